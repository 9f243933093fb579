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
	maxRoot        = 1024 // bytes: paths below it are limited to 4096
	maxFileName    = 255  // bytes, on most file systems
)

// variableRoot matches a root that begins with a variable of the site, which only a login there can expand.
var variableRoot = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*(/|$)`)

// Site returns the requested site. The default root is in the folder here for a local site, and otherwise below the
// user's home directory. A root that begins with a variable remains unchanged until a login at the site expands it
// (CheckRoot).
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

// Terms checks the charges of a site, and returns them in the form that is stored: texts with the same meaning become
// equal.
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

// checkPeriod refuses periods that sites do not use for billing: a typing error would make plans far too expensive.
func checkPeriod(b cost.Billing) error {
	switch b.Period {
	case time.Hour, time.Minute, time.Second, 0:
		return nil
	}
	return corral.ErrorAt(corral.Invalid, "billing", "%s is not a billing period of sites: want 1h, 1m or 1s, also "+
		"after a minimum such as 10m-minimum", b.Period)
}

// root returns the clean path of the directory that only the site uses: everything below it is removed with the site,
// so it must not be /. The path is clean so that the roots of sites can be compared by name.
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

// CheckRoot checks that file systems accept a root, which must be a clean path.
func CheckRoot(root string) error {
	var k checker
	k.invalid(strings.ContainsFunc(root, unicode.IsControl), "root", "%.80q contains a control character", root)
	// The JSON decoder has replaced invalid UTF-8.
	k.invalid(strings.ContainsRune(root, utf8.RuneError), "root", "%.80q is not in UTF-8", root)
	k.invalid(len(root) > maxRoot, "root", "it has %d bytes, and the maximum is %d", len(root), maxRoot)
	for name := range strings.SplitSeq(root, "/") {
		k.invalid(len(name) > maxFileName, "root",
			"a name in it, %.20s…, has %d bytes, and the maximum is %d", name, len(name), maxFileName)
	}
	return k.err
}

// dialect checks that name is the name of a batch system.
func (k *checker) dialect(place, name string) {
	_, err := corral.BatchSystemNamed(name)
	k.invalid(err != nil, place, "%v", err)
}

// CheckOptions checks the batch options of a site: their form, and that its batch system supports them.
func CheckOptions(site corral.Site) error {
	var k checker
	k.options(site.BatchOptions)
	k.optionsOf(site.Batch, site.BatchOptions)
	return k.err
}

// options checks words for a batch system. They become part of lines in a job's script, where a control character would
// begin another line. Only the batch system can check their meaning.
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

// optionsOf refuses options that the batch system does not support. fork, which has no queues, would ignore them, but
// users who specify an account or a queue expect it to have an effect.
func (k *checker) optionsOf(batch string, o corral.BatchOptions) {
	system, err := corral.BatchSystemNamed(batch)
	if err != nil { // dialect reports this
		return
	}
	for _, place := range system.Lacks(o) {
		k.unsatisfiable(true, place, "the batch system %s does not support this", batch)
	}
}

// Set changes the site as requested and returns descriptions of the changes for the site's history; empty if the
// request does not contain any.
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
	if terms, err := Terms(site.SiteTerms); err == nil { // invalid terms have already been refused
		site.SiteTerms = terms
	}
	return said
}

// assign sets a value if from is not nil. It uses pointers because an empty queue is a legal value.
func assign[T any](said *[]string, name string, to, from *T) {
	if from != nil {
		*to = *from
		*said = append(*said, name+" "+inQuotes(*from))
	}
}

// inQuotes formats a value so that an empty one is visible.
func inQuotes(v any) string {
	if n, ok := v.(int); ok {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%q", v)
}
