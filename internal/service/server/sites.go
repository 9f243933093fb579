package server

import (
	"context"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
)

// siteHandlers answer requests about sites. The requests for which corrald connects to the site are in visit.go.
//
// The engine does the work at a site: a new site gets a setup job, and a site whose removal was requested gets a
// cleanup job, both after the answer. The handlers create or move the row and record the request in its history.
type siteHandlers struct {
	rest.Resource[corral.Site]                            // finds the site that now has the name in the path
	record                     rest.Resource[corral.Site] // for requests that only read: also finds a deleted site
	visitor                    visitor
	roots                      string // the folder for local sites that are created without a root
}

func newSites(a *rest.Adapter, cfg Config, v *visitKeeper) *siteHandlers {
	r := rest.Resource[corral.Site]{
		Adapter: a,
		Object:  corral.ObjectSite,
		ID:      func(s corral.Site) int64 { return int64(s.ID) },
		Find:    func(c *rest.Call, tx *store.Tx) (corral.Site, error) { return siteNamed(tx, c.Param("site")) },
		Progress: func(list string) (func(corral.Site) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.SiteStates)
			return u.Site, err
		},
	}
	goes := visitor{cfg.Reach, cfg.Prober, v}
	record := r
	record.Find = func(c *rest.Call, tx *store.Tx) (corral.Site, error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return site, err
		}
		return goes.seen(tx, site)
	}
	return &siteHandlers{Resource: r, record: record, visitor: goes, roots: cfg.Folders.Sites}
}

func (h *siteHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/v1/sites", h.list, listing...),
		rest.Post("/v1/sites", h.create),
		rest.Get("/v1/sites/:site", h.record.Get, waiting...),
		rest.Patch("/v1/sites/:site", h.set),
		rest.Delete("/v1/sites/:site", h.remove, "force"),
		rest.Post("/v1/sites/:site/probe", h.probe),
		rest.Post("/v1/sites/:site/forgive", h.forgive),
		rest.Get("/v1/sites/:site/history", h.history, paging...),
		rest.Get("/v1/sites/:site/timeline", h.timeline),
		rest.Get("/v1/sites/:site/waits", h.waits),
		rest.Get("/v1/sites/:site/ledger", h.ledger),
		rest.Get("/v1/sites/:site/waits/each", h.eachWait),
	}
}

// siteOnRecord finds the site that the path names for a request that only reads: if no site has the name now, it finds
// the last one that had it.
func siteOnRecord(c *rest.Call, tx *store.Tx) (corral.Site, error) {
	return rest.Referred("site", c.Param("site"), tx.Site, tx.SiteLastNamed)
}

// seen adds the data that is not stored: the nodes that the next attempt avoids, which depend on lost hosts and the
// time, and the credentials of corrald's login, which are files that others replace.
func (v visitor) seen(tx *store.Tx, site corral.Site) (corral.Site, error) {
	if site.State.Terminal() {
		return site, nil
	}
	var err error
	site.Credentials = v.reach.Credentials.Of(site)
	site.Avoided, err = tx.BadNodes(site, "", 1)
	return site, err
}

func (h *siteHandlers) list(c *rest.Call) error {
	return h.Page(c, func(tx *store.Tx, f store.Filter) ([]corral.Site, error) {
		sites, err := tx.Sites(f)
		for i := range sites {
			if err == nil {
				sites[i], err = h.visitor.seen(tx, sites[i])
			}
		}
		return sites, err
	})
}

// set changes options and limits of a site for later attempts. New options are checked at the site before they are
// recorded, outside the transaction, so the step refuses them if the site was changed meanwhile.
func (h *siteHandlers) set(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(ctx context.Context, in api.SetSite) (rest.Step[corral.Site], error) {
		site, err := h.Load(ctx, c)
		if err != nil {
			return rest.Step[corral.Site]{}, err
		}
		facts, err := h.visitor.checkSet(ctx, c.Caller(), site, in)
		if err != nil {
			return rest.Step[corral.Site]{}, visitEntry(c.Caller(), err)
		}
		return rest.Only(func(tx *store.Tx) (corral.Site, error) {
			if err := stillAs(tx, site, in); err != nil {
				return site, err
			}
			// Set is applied to the copy for its description, and then to the row inside the store.
			said := request.Set(&site, in)
			_, err := tx.SetSite(site.ID, func(s *corral.Site) {
				request.Set(s, in)
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
			return h.visitor.seen(tx, site)
		})
	})
}

// settable refuses changes of a deleted site.
func settable(site corral.Site) error {
	if site.State == corral.SiteDeleted {
		return corral.ErrorAt(corral.Conflict, "site", "%s is %s", site.Name, site.State)
	}
	return nil
}

// remove requests the site's removal or, by force, deletes its record: the record of a site that no longer answers
// would otherwise stay forever. A removal that is already in progress is left alone.
func (h *siteHandlers) remove(c *rest.Call) error {
	force := c.Query.Flag("force")
	if err := c.Query.Err(); err != nil {
		return err
	}
	return h.Alter(c, func(tx *store.Tx, site corral.Site) (corral.Site, error) {
		switch {
		case site.State == corral.SiteDeleted:
			return site, nil
		case force:
			return forgetSite(tx, site)
		case site.State == corral.SiteExiting || site.State == corral.SiteRemoving:
			return site, nil
		}
		if err := releaseOver(tx, site); err != nil {
			return site, err
		}
		if err := tx.UnusedSite(site); err != nil {
			return site, err
		}
		return tx.MoveSite(site.ID, corral.SiteRemove, "removal was requested")
	})
}

// releaseOver releases a site's plans whose runs are over, so that the site need not wait until provision.Keep does
// that. UnusedSite reports plans that still request pilots.
func releaseOver(tx *store.Tx, site corral.Site) error {
	_, err := provision.ReleaseOver(tx, func(p corral.Plan) bool {
		for _, id := range p.Sites {
			if id == site.ID {
				return true
			}
		}
		return false
	})
	return err
}

// forgetSite deletes the record and notes in its history that the files at the site stay there; it cancels the site's
// glideins as far as they can still be reached.
func forgetSite(tx *store.Tx, site corral.Site) (corral.Site, error) {
	const reason = "the site was removed by force"
	glideins, err := tx.Glideins(store.GlideinFilter{Site: site.ID, Live: true})
	if err != nil {
		return site, err
	}
	for _, g := range glideins {
		if _, err := tx.AskGlidein(g.ID, corral.AskCancel, reason); err != nil {
			return site, err
		}
	}
	return tx.MoveSite(site.ID, corral.SiteForget, "removed by force; its files at the site stay there")
}

// forgive lets attempts use avoided nodes again, which people request after they have repaired a node.
func (h *siteHandlers) forgive(c *rest.Call) error {
	return rest.Change(h.Adapter, c, func(_ context.Context, in api.NewForgiveness) (rest.Step[corral.Site], error) {
		if err := request.CheckForgiveness(in); err != nil {
			return rest.Step[corral.Site]{}, err
		}
		return rest.Only(func(tx *store.Tx) (corral.Site, error) {
			site, err := h.Find(c, tx)
			if err == nil {
				err = settable(site)
			}
			if err == nil {
				err = rest.Missing("nodes", tx.ForgiveNodes(site.ID, in.Nodes...))
			}
			if err != nil {
				return site, err
			}
			return h.visitor.seen(tx, site)
		})
	})
}

// history answers with the histories of the site and of its setup and cleanup jobs. The attempts of its glideins are
// in the glideins' histories.
func (h *siteHandlers) history(c *rest.Call) error {
	return h.Histories(c, func(tx *store.Tx) ([]store.Subject, error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return nil, err
		}
		setup, cleanup, err := siteJobs(tx, site.ID)
		return append([]store.Subject{h.Subject(site)}, jobSubjects(append(setup, cleanup...))...), err
	})
}

// siteJobs returns the site's setup jobs and cleanup jobs, which belong to no glidein.
func siteJobs(tx *store.Tx, site corral.SiteID) (setup, cleanup []corral.Job, err error) {
	setup, err = tx.Jobs(store.JobFilter{Site: site, Kind: corral.SetupJob})
	if err != nil {
		return nil, nil, err
	}
	cleanup, err = tx.Jobs(store.JobFilter{Site: site, Kind: corral.CleanupJob})
	return setup, cleanup, err
}

// timeline answers with the events of all jobs at the site, including attempts.
func (h *siteHandlers) timeline(c *rest.Call) error {
	return timelines(h.Adapter, c, func(tx *store.Tx) ([]corral.Job, error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return nil, err
		}
		return tx.Jobs(store.JobFilter{Site: site.ID})
	})
}

// maxWaits is the number of attempts, the most recent ones, that are used as evidence of a site's queueing times.
const maxWaits = 10_000

// waits answers with statistics of the queueing times at the site. Sites that had the name before count as well: they
// were most likely the same machine, removed and created again.
func (h *siteHandlers) waits(c *rest.Call) error {
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.List[corral.WaitStats], error) {
		waits, err := waitsAt(c, tx)
		return rest.Whole(queueing.Stats(waits, time.Now()), ""), err
	})
}

// ledger answers with the site's balance and spending, even for a deleted site.
func (h *siteHandlers) ledger(c *rest.Call) error {
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.Ledger, error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return api.Ledger{}, err
		}
		return provision.Ledger(tx, site)
	})
}

// eachWait answers with the individual waits.
func (h *siteHandlers) eachWait(c *rest.Call) error {
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.List[corral.Wait], error) {
		waits, err := waitsAt(c, tx)
		return rest.Whole(waits, ""), err
	})
}

func waitsAt(c *rest.Call, tx *store.Tx) ([]corral.Wait, error) {
	site, err := siteOnRecord(c, tx)
	if err != nil {
		return nil, err
	}
	return tx.Waits(store.WaitFilter{Name: site.Name, Owner: site.Owner, Last: maxWaits})
}

// timelines answers with the events that find's jobs have reached. They are derived from the times in the jobs' rows:
// a timeline has no table of its own.
func timelines(a *rest.Adapter, c *rest.Call, find func(*store.Tx) ([]corral.Job, error)) error {
	return rest.Read(a, c, func(tx *store.Tx) (api.List[corral.TimelineEvent], error) {
		jobs, err := find(tx)
		return rest.Whole(corral.Timeline(jobs...), ""), err
	})
}

func jobSubjects(jobs []corral.Job) []store.Subject {
	var subjects []store.Subject
	for _, j := range jobs {
		subjects = append(subjects, store.Subject{Object: corral.ObjectJob, ID: int64(j.ID)})
	}
	return subjects
}
