package request

import (
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// Limits of requests, in addition to the ranges of numbers.
const (
	maxLabels   = 64
	maxText     = 256 // bytes of a label's value, and of a text for a batch system
	maxForgiven = 1000
	maxSites    = 64
	maxProfiles = 64
)

// The form distinguishes a name from an id, so that a route can accept either: an id consists only of digits, a name
// does not.
var (
	nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	keyRule  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)
	hostRule = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]{0,253}[A-Za-z0-9])?$`)
	idRule   = regexp.MustCompile(`^[0-9]+$`)
)

// IsID reports whether ref, which names an object in a path or a field, is an id rather than a name.
func IsID(ref string) bool { return idRule.MatchString(ref) }

// A checker keeps the first error found in a request, so that the rules read as a list: each has a condition, a place,
// and a message for the client.
type checker struct{ err error }

// invalid reports an error that does not depend on the site or the cluster: the request must be changed.
func (k *checker) invalid(bad bool, place, format string, args ...any) {
	if bad {
		k.keep(corral.ErrorAt(corral.Invalid, place, format, args...))
	}
}

// unsatisfiable reports a request that another site or cluster, or this one at another time, could satisfy.
func (k *checker) unsatisfiable(bad bool, place, format string, args ...any) {
	if bad {
		k.keep(corral.ErrorAt(corral.Unsatisfiable, place, format, args...))
	}
}

// keep keeps err, unless it is nil or an earlier error has been kept.
func (k *checker) keep(err error) {
	if k.err == nil {
		k.err = err
	}
}

// name checks the name of a site, cluster or mirror.
func (k *checker) name(place, name string) {
	k.invalid(!nameRule.MatchString(name), place,
		"%.80q is not a name: want 1 to 63 of a-z, 0-9, '.', '_' and '-', the first a letter or digit", name)
	k.invalid(IsID(name), place, "%q is a number, which would be mistaken for an id", name)
}

// absolute checks a path on this machine, if there is one.
func (k *checker) absolute(place, path string) {
	k.invalid(path != "" && !filepath.IsAbs(path), place, "%.80q is not an absolute path", path)
}

// text checks a text that is passed to a batch system or displayed. A control character could end the line that
// contains it, or control a terminal.
func (k *checker) text(place, s string) {
	k.invalid(len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl), place,
		"want at most %d bytes without control characters", maxText)
}

// oneOf checks a choice; an empty one selects the default.
func oneOf[S ~string](k *checker, place string, choice S, legal []S) {
	k.invalid(choice != "" && !slices.Contains(legal, choice), place, "%.80q is none of %s", choice, words(legal))
}

// words lists the choices for a message.
func words[S ~string](known []S) string {
	var all []string
	for _, w := range known {
		all = append(all, string(w))
	}
	return strings.Join(all, ", ")
}

// labels checks labels. A key must not contain =, which separates key and value in a query; a value is any text.
func (k *checker) labels(labels map[string]string) {
	k.invalid(len(labels) > maxLabels, "labels", "%d are more than %d", len(labels), maxLabels)
	for key, value := range labels {
		k.invalid(!keyRule.MatchString(key), "labels",
			"%.80q is not a key: want 1 to 63 letters, digits, '.', '_', '/' and '-', the first a letter or digit", key)
		k.text("labels."+key, value)
	}
}

// ownLabels are the labels by which corrald recognizes its own requests: the pilots of a plan, their numbers, and the
// pilots of a cluster's scale and of an ensemble. A glidein with the label of a plan is charged to and released with
// the plan.
var ownLabels = []string{corral.PlanLabel, "pilot", "scale", "hedges", record.Label}

// CheckLabels refuses labels that mark corrald's own requests, except for those allowed.
func CheckLabels(labels map[string]string, allowed ...string) error {
	var k checker
	for _, key := range ownLabels {
		_, given := labels[key]
		given = given && !slices.Contains(allowed, key)
		k.invalid(given, "labels."+key, "corrald itself sets the label %s on the requests of plans, scales and "+
			"ensembles: choose another", key)
	}
	return k.err
}

// sites checks that a list names each site once. Whether a name and an id refer to the same site is found when they are
// looked up.
func (k *checker) sites(refs []string) {
	k.invalid(len(refs) > maxSites, "sites", "%d are more than %d", len(refs), maxSites)
	for i, ref := range refs[:min(len(refs), maxSites)] {
		k.invalid(slices.Contains(refs[:i], ref), "sites", "%.80q is given twice", ref)
	}
}

// hostPort checks the form of an address to connect to. It does not resolve the name, which may differ between
// corrald's host and the node that connects.
func (k *checker) hostPort(place, address string) {
	host, port, err := net.SplitHostPort(address)
	n, _ := strconv.ParseUint(port, 10, 16)
	k.invalid(err != nil || n == 0 || !hostRule.MatchString(host), place, "%.80q is not HOST:PORT", address)
}

// CheckRun makes the checks that internal/work/run leaves to its callers; that package reads the workflow itself.
func CheckRun(in api.NewRun) error {
	var k checker
	if in.Open {
		openRun(&k, in)
	} else {
		k.invalid(len(in.Workflow) == 0, "workflow", "missing")
		k.invalid(in.Options.Open, "options.open", "set open in the request itself, not in its options")
	}
	k.text("workflow_name", in.WorkflowName)
	k.absolute("source_dir", in.SourceDir)
	k.absolute("dir", in.Dir)
	k.absolute("done_dir", in.DoneDir)
	k.absolute("rescue", in.Rescue)
	k.labels(in.Labels)
	return k.err
}

// CheckStream checks that a run can be streamed on its cluster, if streaming is requested.
func CheckStream(o corral.RunOptions, cluster corral.Cluster) error {
	var k checker
	k.invalid(o.Stream && cluster.Kind != corral.Condor, "stream",
		"cluster %s is of kind %s, whose workers are as fast without streaming: leave it out, or use a "+
			"cluster of kind %s", cluster.Name, cluster.Kind, corral.Condor)
	return k.err
}

// CheckTaskChoice checks a request about single tasks of a run. Whether the run has these tasks is checked when its
// state is read.
func CheckTaskChoice(in api.TaskChoice) error {
	var k checker
	k.invalid(len(in.Tasks) == 0, "tasks", "missing")
	k.invalid(len(in.Tasks) > api.MaxTasks, "tasks", "%d are more than %d", len(in.Tasks), api.MaxTasks)
	return k.err
}

// CheckPackage checks a request to import a package. The source itself is checked when it is read.
func CheckPackage(in api.NewPackage) error {
	var k checker
	k.invalid(in.Source == "", "source", "missing")
	k.invalid(in.Sign && in.Signature != nil, "sign", "the package has a signature already")
	return k.err
}

// CheckForgiveness checks a request to forgive nodes. Only the site knows its nodes: an unknown name has no effect.
func CheckForgiveness(in api.NewForgiveness) error {
	var k checker
	k.invalid(len(in.Nodes) > maxForgiven, "nodes", "%d are more than %d", len(in.Nodes), maxForgiven)
	return k.err
}

// CheckMirror checks a request for a mirror. Its URL must be the URL of a folder that contains packages, without a
// query or a fragment. Messages do not repeat the URL, which may contain a password.
func CheckMirror(in api.NewMirror) error {
	var k checker
	k.name("name", in.Name)
	u, err := url.Parse(in.URL)
	if err != nil {
		k.invalid(true, "url", "it is not a URL")
		return k.err
	}
	isFile := u.Scheme == "file"
	k.invalid(!slices.Contains([]string{"http", "https", "ftp", "sftp", "file"}, u.Scheme), "url",
		"the scheme is none of http, https, ftp, sftp, file")
	k.invalid(!isFile && u.Hostname() == "", "url", "the host is missing")
	k.invalid(isFile && (u.Host != "" || !path.IsAbs(u.Path)), "url",
		"a file URL has an absolute path and no host: file:///DIR")
	k.invalid(u.RawQuery != "" || u.Fragment != "", "url", "the URL of a mirror must not have a query or a fragment")
	_, password := u.User.Password()
	k.invalid(password, "url", "a password would be visible to everyone who lists mirrors")
	return k.err
}
