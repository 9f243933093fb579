package request

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/plan/cost"
)

const (
	maxSiteOptions = 64
	maxRoot        = 1024 // bytes: what is put below it must have room in a path of 4096
	maxFileName    = 255  // bytes, of most file systems
)

// variableRoot is a root that begins with a variable of the site, which only a login there can expand.
var variableRoot = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*(/|$)`)

// Site returns the site that is asked for. A site that asks for no root gets one in the folder here if it is on this
// machine, and below the user's home directory elsewhere; a root that begins with a variable stays as it is until
// somebody has looked at the site (CheckRoot).
func Site(in api.NewSite, here string) (corral.Site, error) {
	var k checker
	k.name("name", in.Name)
	contact, err := gridsite.ParseContact(in.Contact)
	k.keep(err)
	site := corral.Site{
		Name: in.Name, Contact: contact.String(), Batch: in.Batch, HeadBatch: cmp.Or(in.HeadBatch, corral.ForkBatch),
		BatchOptions: in.BatchOptions, Limits: corral.SiteLimits{MaxQueued: in.MaxQueued, MaxRunning: in.MaxRunning},
	}
	k.dialect("batch", site.Batch)
	k.dialect("head_batch", site.HeadBatch)
	k.keep(CheckOptions(site))
	site.SiteTerms, err = Terms(in.SiteTerms)
	k.keep(err)
	site.Root = k.root(in, contact, here)
	return site, k.err
}

// Terms checks what a site charges, and returns it in the words that are kept: two texts that mean the same are the
// same then.
func Terms(in corral.SiteTerms) (corral.SiteTerms, error) {
	tariff, allocation, err := cost.TermsOf(in)
	if err != nil {
		return in, err
	}
	if in.Price != "" {
		in.Price = tariff.Rate.String()
	}
	if in.Billing != "" {
		if err := checkPeriod(tariff.Billing); err != nil {
			return in, err
		}
		in.Billing = tariff.Billing.String()
	}
	if allocation != nil {
		in.Allocation = cost.Amount{Money: *allocation, Unit: tariff.Rate.Unit}.String()
	}
	return in, nil
}

// checkPeriod refuses periods by which no site bills: a slip would make plans that are far too dear.
func checkPeriod(b cost.Billing) error {
	switch b.Period {
	case time.Hour, time.Minute, time.Second, 0:
		return nil
	}
	return corral.ErrorAt(corral.Invalid, "billing", "%s is not a period by which sites bill: 1h, 1m or 1s, after a "+
		"minimum also, such as 10m-minimum", b.Period)
}

// root returns the clean directory that is to be the site's alone: everything below it is removed with the site. That
// is why it is never /. It is clean, so that roots of sites can be compared by their names.
func (k *checker) root(in api.NewSite, contact gridsite.Contact, here string) string {
	root := in.Root
	switch {
	case root != "":
	case contact.Transport == "ssh":
		root = "$HOME/.corral-" + in.Name
	default:
		root = filepath.Join(here, in.Name)
	}
	clean := path.Clean(root)
	k.keep(CheckRoot(clean))
	if variableRoot.MatchString(clean) && contact.Transport == "ssh" {
		return clean
	}
	k.invalid(!path.IsAbs(root) || clean == "/", "root", "%.80q is not an absolute path below /", root)
	return clean
}

// CheckRoot checks a root, which is a clean path, for what no file system would do with it.
func CheckRoot(root string) error {
	var k checker
	k.invalid(strings.ContainsFunc(root, unicode.IsControl), "root", "%.80q has a control character in it", root)
	k.invalid(strings.ContainsRune(root, utf8.RuneError), "root", "%.80q is not in UTF-8", root) // JSON has put that in
	k.invalid(len(root) > maxRoot, "root", "it has %d bytes, and %d is the most", len(root), maxRoot)
	for name := range strings.SplitSeq(root, "/") {
		k.invalid(len(name) > maxFileName, "root",
			"a name in it, %.20s…, has %d bytes, and %d is the most", name, len(name), maxFileName)
	}
	return k.err
}

// dialect checks the name of a batch system.
func (k *checker) dialect(place, name string) {
	_, err := corral.BatchSystemNamed(name)
	k.invalid(err != nil, place, "%v", err)
}

// CheckOptions checks the batch options of a site: their form, and that its batch system has such options at all.
func CheckOptions(site corral.Site) error {
	var k checker
	k.options(site.BatchOptions)
	k.optionsOf(site.Batch, site.BatchOptions)
	return k.err
}

// options checks words that are handed to a batch system. They end up in lines of a job's script, where a control
// character would begin another line; what they mean is the batch system's to judge.
func (k *checker) options(o corral.BatchOptions) {
	for _, given := range o.Given() {
		k.text(given.Name, given.Value)
	}
	k.invalid(len(o.SiteOptions) > maxSiteOptions, "site_options",
		"%d are more than %d", len(o.SiteOptions), maxSiteOptions)
	for _, line := range o.SiteOptions {
		k.invalid(strings.TrimSpace(line) == "", "site_options", "a line is empty")
	}
}

// optionsOf refuses options that the batch system does not have. fork, which has no queues, would ignore them, and a
// person who asks for an account or a queue expects it to count.
func (k *checker) optionsOf(batch string, o corral.BatchOptions) {
	system, err := corral.BatchSystemNamed(batch)
	if err != nil { // dialect says so
		return
	}
	for _, place := range system.Lacks(o) {
		k.unsatisfiable(true, place, "the batch system %s has none", batch)
	}
}

// Set changes the site as asked and returns what it has set, in words for the site's history; none: nothing was asked.
func Set(site *corral.Site, in api.SetSite) (said []string) {
	assign(&said, "queue", &site.Queue, in.Queue)
	assign(&said, "account", &site.Account, in.Account)
	assign(&said, "qos", &site.QOS, in.QOS)
	assign(&said, "constraint", &site.Constraint, in.Constraint)
	assign(&said, "site_options", &site.SiteOptions, in.SiteOptions)
	assign(&said, "max_queued", &site.Limits.MaxQueued, in.MaxQueued)
	assign(&said, "max_running", &site.Limits.MaxRunning, in.MaxRunning)
	assign(&said, "price", &site.Price, in.Price)
	assign(&said, "billing", &site.Billing, in.Billing)
	assign(&said, "allocation", &site.Allocation, in.Allocation)
	if terms, err := Terms(site.SiteTerms); err == nil { // what is wrong is refused before
		site.SiteTerms = terms
	}
	return said
}

// assign sets what is asked for, which a pointer tells from what is not: an empty queue is a legal value.
func assign[T any](said *[]string, name string, to, from *T) {
	if from != nil {
		*to = *from
		*said = append(*said, name+" "+inQuotes(*from))
	}
}

// inQuotes writes a value so that an empty one can be seen.
func inQuotes(v any) string {
	if n, ok := v.(int); ok {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%q", v)
}
