package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

// A stager makes sure that a site has its packages. Sites lose packages: they purge files that are not used for a long
// time, and people remove files that they do not recognize. So a stager watches for jobs that fail because of missing
// files.
type stager struct {
	line     *line
	delivery *delivery.Delivery
	bounded  bool // the site's cache has a size limit

	lost     bool                 // the site's own package is missing and not yet reinstalled
	notFound bool                 // an attempt has ended as if its program was missing
	missed   map[string]time.Time // :: digest of a package → start time of a pilot that did not find it installed
}

func newStager(way *line, cfg Config) *stager {
	return &stager{
		line: way, delivery: delivery.NewDelivery(cfg.Catalog, cfg.Supply, way.id, way.write),
		bounded: cfg.Supply.CacheBytes > 0, missed: map[string]time.Time{},
	}
}

// prepare determines, before the first job at a site, which package runs there, and copies the pilot binary. Pilots,
// and setup jobs for further packages, are submitted only to sites that have had their first job. It returns the site
// with these findings, which are recorded only once our files may be at the site, so a site without a package never
// needs a cleanup.
func (s *stager) prepare(ctx context.Context, w turn, a reconcile.Submit) (corral.Site, error) {
	site := w.Site
	if a.Kind == corral.PilotJob || a.Package != "" {
		return site, nil
	}
	if err := s.line.open(ctx, site); err != nil {
		return site, err
	}
	if a.Kind == corral.CleanupJob {
		return site, s.boot(ctx, w.now, site, true)
	}
	why, err := s.line.reach.CheckRoot(ctx, s.line.access.Head, site)
	if err != nil {
		return site, fmt.Errorf("looking at %s: %w", site.Root, err)
	}
	if why != "" { // others may have put files there since the root was chosen
		return site, delivery.Hopeless(site.Root + " cannot be the root of a site: " + why)
	}
	facts, err := s.delivery.Choose(ctx, s.line.access.Head, site)
	if err != nil {
		return site, err
	}
	if err := s.boot(ctx, w.now, facts, site.PackageDigest != ""); err != nil {
		return site, err
	}
	err = s.line.write(ctx, func(tx *store.Tx) (err error) {
		site, err = tx.SetSite(site.ID, func(s *corral.Site) {
			s.Install(facts.Platform, facts.Package, facts.PackageDigest)
		})
		return err
	})
	return site, err
}

// boot copies the pilot binary to the place where the setup and cleanup jobs expect it, unless it is already there.
// before means that the root was already ours.
func (s *stager) boot(ctx context.Context, now time.Time, site corral.Site, before bool) error {
	claim := s.line.reach.Claim(site)
	claim.Before = before
	return s.delivery.Boot(ctx, now, s.line.access.Head, site, claim)
}

// order performs corrald's part of bringing a package to the site and returns the order for its setup job. The package
// is the one with the digest, which glideins need, or the site's own if digest is empty. Packages that the site's other
// pilots need are kept regardless of the cache's limit.
func (s *stager) order(ctx context.Context, w turn, digest string) (*jobfiles.Setup, error) {
	if digest == "" {
		digest = w.Site.PackageDigest
	} else if err := s.boot(ctx, w.now, reconcile.SetupSite(w.World, digest), true); err != nil {
		return nil, err
	}
	var keep []string
	if s.bounded { // otherwise nothing is evicted
		var err error
		if keep, err = s.ordered(ctx, w.World); err != nil {
			return nil, err
		}
		keep = append(keep, w.Site.PackageDigest)
		for _, n := range w.Needs {
			keep = append(keep, n.Digest)
		}
	}
	return s.delivery.Package(ctx, w.now, s.line.access.Head, digest, keep)
}

// ordered lists the packages that the orders of the site's attempts name. These may differ from those that an attempt
// would be given now, because attempts wait in queues while pools are upgraded.
func (s *stager) ordered(ctx context.Context, w reconcile.World) (digests []string, err error) {
	for _, g := range w.Glideins {
		if _, ok := w.Needs[g.Cluster]; !ok {
			continue
		}
		for _, a := range g.Live() {
			b, err := s.line.read(ctx, a, jobfiles.File)
			if err != nil {
				return nil, err
			}
			o, err := jobfiles.Decode(b)
			if digest, ok := o.Pilot.Package(); ok && err == nil { // without an order it has no package yet
				digests = append(digests, digest)
			}
		}
	}
	return digests, nil
}

// look checks whether the site has lost its package, if a pilot seems not to have found it.
func (s *stager) look(ctx context.Context, site corral.Site) error {
	if !s.notFound || site.State != corral.SiteReady || !s.line.take() {
		return nil
	}
	if err := s.line.open(ctx, site); err != nil {
		return err
	}
	pilot, err := delivery.PilotProgram(site)
	if err != nil {
		return err
	}
	there, err := s.line.access.Head.Has(ctx, pilot, true)
	if err != nil {
		return err
	}
	s.notFound, s.lost = false, !there
	return nil
}

// learn extracts information about the site from the end of a job: whether any mirror answered there, for the choice of
// the next way, and whether a package is missing. The information is lost when corrald restarts and is reported again
// by the next job.
func (s *stager) learn(job corral.Job, ev corral.JobEvent, r jobfiles.Report) {
	switch job.Kind {
	case corral.PilotJob:
		if r.Missing != "" {
			s.missed[r.Missing] = job.StartedAt
			if job.StartedAt.IsZero() {
				s.missed[r.Missing] = job.EndedAt
			}
		}
		failed := ev.Outcome == corral.OutcomeFailed && ev.ExitStatus != nil
		s.notFound = s.notFound || failed && *ev.ExitStatus == siteaccess.ExitNotFound
	case corral.SetupJob:
		s.delivery.Learn(r.Tries)
		if job.Package == "" && ev.Outcome == corral.OutcomeDone {
			s.lost = false
		}
	}
}

// unusable fails the site if err shows that its own setup or cleanup is hopeless.
func (s *stager) unusable(ctx context.Context, err error) error {
	var why delivery.Hopeless
	if !errors.As(err, &why) {
		return err
	}
	if err := s.line.moveSite(ctx, corral.SiteFail, string(why)); err != nil {
		return err
	}
	return corral.Errorf(corral.Failed, "%s", why)
}
