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

// Limits of what may be asked for, beside the ranges of numbers.
const (
	maxLabels   = 64
	maxText     = 256 // bytes of a label's value and of what is meant for a batch system
	maxForgiven = 1000
	maxSites    = 64
	maxProfiles = 64
)

// A name is told from an id by its form, so that a route can take either: an id is digits alone, and a name never is.
var (
	nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	keyRule  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)
	hostRule = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]{0,253}[A-Za-z0-9])?$`)
	idRule   = regexp.MustCompile(`^[0-9]+$`)
)

// IsID reports whether ref, which names an object in a path or a field, is an id rather than a name.
func IsID(ref string) bool { return idRule.MatchString(ref) }

// A checker keeps the first thing that is wrong with a request, so that its rules read as a list: each says what would
// be bad, where, and what the client is told.
type checker struct{ err error }

// invalid refuses what no corrald would take: the request must change.
func (k *checker) invalid(bad bool, place, format string, args ...any) {
	if bad {
		k.keep(corral.ErrorAt(corral.Invalid, place, format, args...))
	}
}

// unsatisfiable refuses what another site or cluster, or this one at another time, could give.
func (k *checker) unsatisfiable(bad bool, place, format string, args ...any) {
	if bad {
		k.keep(corral.ErrorAt(corral.Unsatisfiable, place, format, args...))
	}
}

// keep keeps an error that itself says what is wrong.
func (k *checker) keep(err error) {
	if k.err == nil {
		k.err = err
	}
}

// name checks the name of a site, cluster or mirror.
func (k *checker) name(place, name string) {
	k.invalid(!nameRule.MatchString(name), place,
		"%.80q is not a name: want 1 to 63 of a-z, 0-9, '.', '_' and '-', the first a letter or digit", name)
	k.invalid(IsID(name), place, "%q is a number, which would be taken for an id", name)
}

// absolute checks a path on this machine, if there is one.
func (k *checker) absolute(place, path string) {
	k.invalid(path != "" && !filepath.IsAbs(path), place, "%.80q is not an absolute path", path)
}

// text checks a word that is handed to a batch system or shown to people. A control character could end the line it
// stands in, or make a terminal do something.
func (k *checker) text(place, s string) {
	k.invalid(len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl), place,
		"want at most %d bytes without control characters", maxText)
}

// oneOf checks a choice; none is left to the default.
func oneOf[S ~string](k *checker, place string, choice S, legal []S) {
	k.invalid(choice != "" && !slices.Contains(legal, choice), place, "%.80q is none of %s", choice, words(legal))
}

// words lists what there is to choose from, for a message.
func words[S ~string](known []S) string {
	var all []string
	for _, w := range known {
		all = append(all, string(w))
	}
	return strings.Join(all, ", ")
}

// labels checks labels: a key has no = in it, which a query puts between key and value; a value is any text.
func (k *checker) labels(labels map[string]string) {
	k.invalid(len(labels) > maxLabels, "labels", "%d are more than %d", len(labels), maxLabels)
	for key, value := range labels {
		k.invalid(!keyRule.MatchString(key), "labels",
			"%.80q is not a key: want 1 to 63 letters, digits, '.', '_', '/' and '-', the first a letter or digit", key)
		k.text("labels."+key, value)
	}
}

// ownLabels are the labels by which corrald knows what it asked for itself: the pilots of a plan, their numbers, and
// those of a cluster's scale and of an ensemble. A glidein with one is charged to the plan, and let go with it.
var ownLabels = []string{corral.PlanLabel, "pilot", "scale", "hedges", record.Label}

// CheckLabels refuses, on what a person asks for, labels that say that corrald did; some may be allowed there.
func CheckLabels(labels map[string]string, allowed ...string) error {
	var k checker
	for _, key := range ownLabels {
		_, given := labels[key]
		given = given && !slices.Contains(allowed, key)
		k.invalid(given, "labels."+key, "corrald itself puts the label %s on what plans, scales and ensembles "+
			"ask for: choose another", key)
	}
	return k.err
}

// sites checks a list of sites, each of which is named once. Whether a name and an id are of one
// site turns out where they are looked up.
func (k *checker) sites(refs []string) {
	k.invalid(len(refs) > maxSites, "sites", "%d are more than %d", len(refs), maxSites)
	for i, ref := range refs[:min(len(refs), maxSites)] {
		k.invalid(slices.Contains(refs[:i], ref), "sites", "%.80q is given twice", ref)
	}
}

// hostPort checks an address that somebody dials. Only its form: whether the name resolves may differ between corrald's
// host and the node that dials.
func (k *checker) hostPort(place, address string) {
	host, port, err := net.SplitHostPort(address)
	n, _ := strconv.ParseUint(port, 10, 16)
	k.invalid(err != nil || n == 0 || !hostRule.MatchString(host), place, "%.80q is not HOST:PORT", address)
}

// CheckRun checks what internal/work/run leaves to its callers; the workflow it reads itself.
func CheckRun(in api.NewRun) error {
	var k checker
	if in.Open {
		openRun(&k, in)
	} else {
		k.invalid(len(in.Workflow) == 0, "workflow", "missing")
		k.invalid(in.Options.Open, "options.open", "a run is open if the request says so beside its options")
	}
	k.text("workflow_name", in.WorkflowName)
	k.absolute("source_dir", in.SourceDir)
	k.absolute("dir", in.Dir)
	k.absolute("done_dir", in.DoneDir)
	k.absolute("rescue", in.Rescue)
	k.labels(in.Labels)
	return k.err
}

// CheckStream checks whether a run can be streamed on its cluster, if that is asked for.
func CheckStream(o corral.RunOptions, cluster corral.Cluster) error {
	var k checker
	k.invalid(o.Stream && cluster.Kind != corral.Condor, "stream",
		"cluster %s is of kind %s, whose workers take tasks as fast anyway: leave it out, or name a cluster of kind %s",
		cluster.Name, cluster.Kind, corral.Condor)
	return k.err
}

// CheckTaskChoice checks a request about single tasks of a run; whether the run has them shows when its state is read.
func CheckTaskChoice(in api.TaskChoice) error {
	var k checker
	k.invalid(len(in.Tasks) == 0, "tasks", "missing")
	k.invalid(len(in.Tasks) > api.MaxTasks, "tasks", "%d are more than %d", len(in.Tasks), api.MaxTasks)
	return k.err
}

// CheckPackage checks a request for the import of a package; where its source leads shows when it is read.
func CheckPackage(in api.NewPackage) error {
	var k checker
	k.invalid(in.Source == "", "source", "missing")
	k.invalid(in.Sign && in.Signature != nil, "sign", "the package has a signature already")
	return k.err
}

// CheckForgiveness checks a request to forgive nodes. Which nodes there are only the site knows: a name that it does
// not have forgives nothing.
func CheckForgiveness(in api.NewForgiveness) error {
	var k checker
	k.invalid(len(in.Nodes) > maxForgiven, "nodes", "%d are more than %d", len(in.Nodes), maxForgiven)
	return k.err
}

// CheckMirror checks a request for a mirror, whose URL is that of a folder: packages are below it, so it has neither
// query nor fragment. No message repeats the URL, which may hold a password.
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
	k.invalid(!isFile && u.Hostname() == "", "url", "it names no host")
	k.invalid(isFile && (u.Host != "" || !path.IsAbs(u.Path)), "url",
		"a file URL has an absolute path and no host: file:///DIR")
	k.invalid(u.RawQuery != "" || u.Fragment != "", "url", "a mirror's directory has neither query nor fragment")
	_, password := u.User.Password()
	k.invalid(password, "url", "a password would be shown to everybody who lists mirrors")
	return k.err
}
