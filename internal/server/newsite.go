package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	forkBatch      = "fork"
	maxSiteOptions = 64
	maxRoot        = 1024 // bytes: what is put below it must have room in a path of 4096
	maxFileName    = 255  // bytes, of most file systems
)

// variableRoot is a root that begins with a variable of the site, which only a login there can expand.
var variableRoot = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*(/|$)`)

func (s *Server) createSite(c echo.Context) error {
	return change(s, c, http.StatusCreated, func(ctx context.Context, in api.NewSite) (step[corral.Site], error) {
		site, err := s.newSite(in, actor(c))
		if err == nil { // before a person is asked for a password
			err = s.db.View(ctx, func(tx *store.Tx) error { return isFree(tx, site) })
		}
		if err == nil {
			site, err = s.visited(ctx, site, in.AcceptHostKey)
		}
		if err != nil {
			return step[corral.Site]{}, entry(err)
		}
		return only(func(tx *store.Tx) (corral.Site, error) {
			if err := isFree(tx, site); err != nil {
				return site, err
			}
			return tx.CreateSite(site)
		})
	})
}

// isFree refuses a site whose name or root is another's.
func isFree(tx *store.Tx, site corral.Site) error {
	if err := tx.FreeSiteName(site.Name); err != nil {
		return placed(corral.Conflict, "name", err)
	}
	return rootIsFree(tx, site)
}

// visited is the site with its root as it is there and with what its batch system says of itself, once it may be one.
func (s *Server) visited(ctx context.Context, site corral.Site, acceptHostKey bool) (corral.Site, error) {
	if strings.HasPrefix(site.Root, "$") {
		var k checker
		root, err := s.cfg.ExpandRoot(ctx, site, acceptHostKey)
		k.keep(err)
		if k.path("root", root); k.err != nil {
			return site, k.err
		}
		site.Root = root
	}
	if err := s.cfg.CheckSite(ctx, site, acceptHostKey); err != nil {
		return site, err
	}
	var err error
	site.Facts, err = s.firstFacts(ctx, site)
	return site, err
}

// newSite checks a request for a site.
func (s *Server) newSite(in api.NewSite, owner string) (corral.Site, error) {
	var k checker
	k.name("name", in.Name)
	contact, err := gridsite.ParseContact(in.Contact)
	k.keep(err)
	k.dialect("batch", in.Batch)
	k.dialect("head_batch", orDefault(in.HeadBatch, forkBatch))
	k.options(in.BatchOptions)
	k.optionsOf(in.Batch, in.BatchOptions)
	root := k.root(s.rootOr(in, contact), contact)
	if k.err != nil {
		return corral.Site{}, k.err
	}
	return corral.Site{
		Name: in.Name, Owner: owner, Contact: contact.String(), Batch: in.Batch, HeadBatch: orDefault(in.HeadBatch, forkBatch),
		Root:         root,
		BatchOptions: in.BatchOptions, Limits: corral.SiteLimits{MaxQueued: in.MaxQueued, MaxRunning: in.MaxRunning},
	}, nil
}

// rootOr is the root that was asked for, or the one of sites that ask for none: below corrald's own cache here, below
// the user's home directory elsewhere.
func (s *Server) rootOr(in api.NewSite, contact gridsite.Contact) string {
	switch {
	case in.Root != "":
		return in.Root
	case contact.Transport == "ssh":
		return "$HOME/.corral-" + in.Name
	}
	return s.cfg.SiteRoot(in.Name)
}

// root checks the directory that is to be the site's alone. Elsewhere it may begin with a variable of that place.
func (k *checker) root(root string, contact gridsite.Contact) string {
	clean := path.Clean(root)
	k.path("root", clean)
	if variableRoot.MatchString(clean) && contact.Transport == "ssh" {
		return clean
	}
	k.invalid(!path.IsAbs(root) || clean == "/", "root", "%.80q is not an absolute path below /", root)
	return clean
}

// path checks a path, which is clean, for what no file system would do with it.
func (k *checker) path(place, clean string) {
	k.invalid(strings.ContainsFunc(clean, unicode.IsControl), place, "%.80q has a control character in it", clean)
	k.invalid(strings.ContainsRune(clean, utf8.RuneError), place, "%.80q is not in UTF-8", clean) // JSON has put that in
	k.invalid(len(clean) > maxRoot, place, "it has %d bytes, and %d is the most", len(clean), maxRoot)
	for name := range strings.SplitSeq(clean, "/") {
		k.invalid(len(name) > maxFileName, place, "a name in it, %.20s…, has %d bytes, and %d is the most", name, len(name), maxFileName)
	}
}

// keep keeps an error that says itself what is wrong.
func (k *checker) keep(err error) {
	if k.err == nil {
		k.err = err
	}
}

func (k *checker) dialect(place, name string) {
	known := gridsite.Dialects()
	k.invalid(!slices.Contains(known, name), place, "%.80q is not supported; what is: %s", name, strings.Join(known, ", "))
}

// options checks words that are handed to a batch system.
func (k *checker) options(o corral.BatchOptions) {
	k.text("queue", o.Queue)
	k.text("account", o.Account)
	k.text("qos", o.QOS)
	k.text("constraint", o.Constraint)
	k.invalid(len(o.SiteOptions) > maxSiteOptions, "site_options", "%d are more than %d", len(o.SiteOptions), maxSiteOptions)
	for _, line := range o.SiteOptions {
		k.text("site_options", line)
		k.invalid(strings.TrimSpace(line) == "", "site_options", "a line is empty")
	}
}

// optionsOf refuses options that the batch system has none of.
func (k *checker) optionsOf(batch string, o corral.BatchOptions) {
	if batch != forkBatch {
		return
	}
	const no = "the batch system fork has none"
	k.unsatisfiable(o.Queue != "", "queue", no)
	k.unsatisfiable(o.Account != "", "account", no)
	k.unsatisfiable(o.QOS != "", "qos", no)
	k.unsatisfiable(o.Constraint != "", "constraint", no)
	k.unsatisfiable(len(o.SiteOptions) != 0, "site_options", no)
}

// silentSite is the error of a site that does not answer: corrald itself is well, and there is no use in asking it
// again at once.
type silentSite struct{ error }

func (e silentSite) Unwrap() error { return e.error }

// entry is the error of a site that did not let corrald in, with the field that would help.
func entry(err error) error {
	var key *gridsite.HostKeyError
	var login *gridsite.LoginError
	switch {
	case errors.As(err, &key) && key.Problem == gridsite.HostKeyUnknown:
		return corral.ErrorAt(corral.Forbidden, "accept_host_key", "%w", key)
	case errors.As(err, &key):
		return corral.ErrorAt(corral.Forbidden, "contact", "%w", key)
	case errors.As(err, &login) && login.Answerable:
		return corral.ErrorAt(corral.Forbidden, "login", "%w", login)
	case errors.As(err, &login):
		return corral.ErrorAt(corral.Forbidden, "contact", "%w", login)
	case corral.KindOf(err) == corral.Unavailable:
		return silentSite{err}
	}
	return err
}

func (s *Server) setSite(c echo.Context) error {
	return change(s, c, http.StatusOK, func(ctx context.Context, in api.SetSite) (step[corral.Site], error) {
		var site corral.Site
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			site, err = theSite(c, tx)
			return err
		})
		if err != nil {
			return step[corral.Site]{}, err
		}
		if err := s.checkSet(ctx, site, in); err != nil {
			return step[corral.Site]{}, err
		}
		facts, err := s.factsWith(ctx, site, in)
		if err != nil {
			return step[corral.Site]{}, entry(err)
		}
		return only(func(tx *store.Tx) (corral.Site, error) {
			if err := stillAs(tx, site, in); err != nil {
				return site, err
			}
			said := set(&site, in)
			_, err := tx.SetSite(site.ID, func(s *corral.Site) {
				set(s, in)
				if facts != nil {
					s.Facts = facts
				}
			})
			if err != nil {
				return site, err
			}
			if err := tx.Log(corral.ObjectSite, int64(site.ID), "set", strings.Join(said, ", ")); err != nil {
				return site, err
			}
			if site, err = tx.Site(site.ID); err != nil {
				return site, err
			}
			return withAvoided(tx, site)
		})
	})
}

// stillAs reports whether the site is still as it was when the change was checked: options hold together or not at all.
func stillAs(tx *store.Tx, checked corral.Site, in api.SetSite) error {
	now, err := tx.Site(checked.ID)
	if err != nil {
		return err
	}
	if err := settable(now); err != nil {
		return err
	}
	in.MaxQueued, in.MaxRunning = nil, nil
	same := reflect.DeepEqual(now.BatchOptions, checked.BatchOptions) && reflect.DeepEqual(now.Facts, checked.Facts)
	if in != (api.SetSite{}) && !same {
		return corral.ErrorAt(corral.Unavailable, "site", "%s was changed or probed at this moment by somebody else: nothing was done, say it again", now.Name)
	}
	return nil
}

func settable(site corral.Site) error {
	if site.State == corral.SiteDeleted {
		return corral.ErrorAt(corral.Conflict, "site", "%s is %s", site.Name, site.State)
	}
	return nil
}

// checkSet checks a change of a site, options that change by asking the site for what they would give.
func (s *Server) checkSet(ctx context.Context, site corral.Site, in api.SetSite) error {
	before := site.BatchOptions
	if said := set(&site, in); len(said) == 0 {
		return corral.ErrorAt(corral.Invalid, "body", "nothing to change is in it")
	}
	if err := settable(site); err != nil {
		return err
	}
	var k checker
	k.options(site.BatchOptions)
	k.optionsOf(site.Batch, site.BatchOptions)
	if k.err != nil || reflect.DeepEqual(before, site.BatchOptions) {
		return k.err
	}
	return entry(s.cfg.CheckSite(ctx, site, false))
}

// set changes the site and says what it was told, in words for its history.
func set(site *corral.Site, in api.SetSite) (said []string) {
	assign(&said, "queue", &site.Queue, in.Queue)
	assign(&said, "account", &site.Account, in.Account)
	assign(&said, "qos", &site.QOS, in.QOS)
	assign(&said, "constraint", &site.Constraint, in.Constraint)
	assign(&said, "site_options", &site.SiteOptions, in.SiteOptions)
	assign(&said, "max_queued", &site.Limits.MaxQueued, in.MaxQueued)
	assign(&said, "max_running", &site.Limits.MaxRunning, in.MaxRunning)
	return said
}

// inQuotes is a value as histories have it, where what is empty can be seen.
func inQuotes(v any) string {
	if n, ok := v.(int); ok {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%q", v)
}

func assign[T any](said *[]string, name string, to, from *T) {
	if from != nil {
		*to = *from
		*said = append(*said, name+" "+inQuotes(*from))
	}
}
