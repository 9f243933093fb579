package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// siteJobWalltime bounds setup and cleanup jobs.
const siteJobWalltime = 10 * time.Minute

// An Address says how workers at a site dial in.
type Address interface {
	// For returns the addresses to try, in order, and the digest of the certificate that the worker
	// port shows, if one of them is a TLS address.
	For(site corral.Site) (addresses []string, certDigest string, err error)

	// Dial connects with the TLS worker port from here, for who comes through a relay.
	Dial(ctx context.Context) (net.Conn, error)
}

// prepare finds out, before the first job at a site, what runs there, and puts the pilot binary there.
// It returns the site with what was found. That is recorded only once something of ours can be there,
// so that a site without a package is one where nothing is left to be cleaned up.
func (l *siteLoop) prepare(ctx context.Context, site corral.Site, a reconcile.Submit) (corral.Site, error) {
	if a.Kind == corral.PilotJob || a.Package != "" {
		return site, nil
	}
	if err := l.open(ctx, site); err != nil {
		return site, err
	}
	if a.Kind == corral.CleanupJob {
		return site, l.boot(ctx, site, true)
	}
	why, err := l.e.cfg.Reach.checkRoot(ctx, l.access.Head, site) // it may have become somebody else's since it was chosen
	if err != nil {
		return site, fmt.Errorf("looking at %s: %w", site.Root, err)
	}
	if why != "" {
		return site, hopeless(site.Root + " cannot be the root of a site: " + why)
	}
	facts, err := l.survey(ctx, site)
	if err != nil {
		return site, err
	}
	if err := l.boot(ctx, facts, site.PackageDigest != ""); err != nil {
		return site, err
	}
	err = l.write(ctx, func(tx *store.Tx) (err error) {
		site, err = tx.SetSite(site.ID, func(s *corral.Site) {
			s.Platform, s.Package, s.PackageDigest = facts.Platform, facts.Package, facts.PackageDigest
		})
		return err
	})
	return site, err
}

// survey asks the site what it is and chooses its package.
func (l *siteLoop) survey(ctx context.Context, site corral.Site) (corral.Site, error) {
	platform, err := l.access.Head.Platform(ctx)
	if err != nil {
		return site, fmt.Errorf("finding the platform of site %s: %w", site.Name, err)
	}
	p, err := l.e.catalog.choose(ctx, platform)
	if err != nil {
		return site, hopeless(err.Error())
	}
	site.Platform, site.Package, site.PackageDigest = platform, p.Name, p.Digest
	return site, nil
}

// exitNotFound is the exit status of a shell whose command was not there.
const exitNotFound = 127

// lookForPackage notes that the site has lost its package, if a pilot seems to have missed it: sites purge what nobody has
// used for long, and people remove what they do not know.
func (l *siteLoop) lookForPackage(ctx context.Context, site corral.Site) error {
	if !l.notFound || site.State != corral.SiteReady || !l.take() {
		return nil
	}
	if err := l.open(ctx, site); err != nil {
		return err
	}
	pilot, err := pilotProgram(site)
	if err != nil {
		return err
	}
	there, err := l.access.Head.Has(ctx, pilot, true)
	if err != nil {
		return err
	}
	l.notFound, l.lost = false, !there
	return nil
}

// pilotProgram is the program of the site's pilots, by its name below the root.
func pilotProgram(site corral.Site) (string, error) {
	dir, err := staging.Dir("", packages.Package{Name: site.Package, Digest: site.PackageDigest})
	return path.Join(dir, pilotInPackage), err
}

// boot puts the pilot binary where the setup and cleanup jobs find it, unless it is there. before: the root was ours.
func (l *siteLoop) boot(ctx context.Context, site corral.Site, before bool) error {
	claim := gridsite.Claim{Owner: l.e.cfg.Reach.owner, Before: before}
	return hopelessly(l.access.Head.Boot(ctx, bootProgram(site), claim, func() (io.ReadCloser, error) { return l.pilotBinary(ctx, site) }))
}

// pilotBinary opens the pilot of the site's package.
func (l *siteLoop) pilotBinary(ctx context.Context, site corral.Site) (*os.File, error) {
	p, _, err := l.e.catalog.of(ctx, site.PackageDigest)
	if err != nil {
		return nil, err
	}
	if missing, err := l.ensure(ctx, p); missing != nil || err != nil {
		return nil, errors.Join(missing, err)
	}
	return l.e.cfg.Depot.binary(p.Package)
}

// hopeless is why something cannot be done at a site, now or later: no network and no batch system is to blame.
type hopeless string

func (h hopeless) Error() string { return string(h) }

// hopelessly makes what the site refused hopeless.
func hopelessly(err error) error {
	if errors.As(err, new(*gridsite.Refused)) {
		return hopeless(err.Error())
	}
	return err
}

// unusable fails the site if err says that its own setup or cleanup is hopeless.
func (l *siteLoop) unusable(ctx context.Context, err error) error {
	var why hopeless
	if !errors.As(err, &why) {
		return err
	}
	if err := l.moveSite(ctx, corral.SiteFail, string(why)); err != nil {
		return err
	}
	return corral.Errorf(corral.Failed, "%s", why)
}

// unsendable decides about a job that cannot be described to its site. What is hopeless fails the site if that is its
// own setup or cleanup, and else only the job: a package or a pool of some glideins is no concern of the others.
func (l *siteLoop) unsendable(ctx context.Context, job corral.Job, err error) error {
	var why hopeless
	var token tokenless
	switch {
	case errors.As(err, &token): // the job stays NEW until there is one
		return nil
	case !errors.As(err, &why):
		return err
	case job.Kind == corral.PilotJob || job.Package != "":
		return l.moveJob(ctx, job, corral.JobEvent{Move: corral.JobEnd, At: time.Now().UTC(), Outcome: corral.OutcomeFailed,
			Transient: job.Kind == corral.SetupJob, Reason: string(why)})
	}
	return l.unusable(ctx, err)
}

// bootProgram is the program of the setup and cleanup jobs, by its name below the root; the digest of its package is in
// it, so that a new release puts its own beside an old one.
func bootProgram(site corral.Site) string {
	return path.Join("boot", site.PackageDigest[len("sha256:"):][:16], "pilot")
}

// spec describes a job to its site: the pilot binary with the verb of its kind, and its order.
func (l *siteLoop) spec(ctx context.Context, w reconcile.World, job corral.Job) (gridsite.JobSpec, error) {
	s := gridsite.JobSpec{Tag: job.Tag, Hosts: 1, CPUs: 1, Walltime: siteJobWalltime}
	setOptions(&s, w.Site, corral.BatchOptions{})
	s.Files = map[string][]byte{}
	o := order.Order{Tag: job.Tag, Root: w.Site.Root}
	var err error
	switch job.Kind {
	case corral.SetupJob:
		s.Program, s.Argv = bootProgram(w.Site), []string{"setup"}
		o.Setup, err = l.setupOrder(ctx, w, job.Package)
	case corral.CleanupJob:
		s.Program, s.Argv = bootProgram(w.Site), []string{"cleanup"}
		o.Cleanup = &order.Cleanup{}
	case corral.PilotJob:
		err = l.pilotSpec(ctx, w, job, &s, &o)
	}
	if err != nil {
		return s, err
	}
	b, err := o.Encode()
	if err != nil {
		return s, fmt.Errorf("encoding the order of %s: %w", job.Name(), err)
	}
	s.Files[order.File] = b
	return s, nil
}

// setupOrder asks for a package that glideins need, by its digest, or for the site's own if that is empty.
func (l *siteLoop) setupOrder(ctx context.Context, w reconcile.World, digest string) (*order.Setup, error) {
	site := w.Site
	if digest == "" {
		digest = site.PackageDigest
	} else if err := l.boot(ctx, site, true); err != nil { // sites purge what nobody has used for long
		return nil, err
	}
	p, mirrors, err := l.e.catalog.of(ctx, digest)
	if corral.KindOf(err) == corral.NotFound {
		return nil, hopeless("the package was removed from the catalog: " + err.Error())
	}
	if err != nil {
		return nil, err
	}
	sources, err := l.supply(ctx, p, mirrors)
	if err != nil {
		return nil, err
	}
	o := &order.Setup{
		Package: p.Name, What: p.What, Version: p.Version, Platform: p.Platform, Digest: p.Digest, SizeBytes: p.SizeBytes,
		Key: string(p.Key), Signature: p.Signature, Sources: sources,
		BytesPerS: l.e.cfg.Supply.Pace.BytesPerS, Window: corral.Seconds(l.e.cfg.Supply.Pace.Window),
		CacheBytes: l.e.cfg.Supply.CacheBytes,
	}
	if o.Keep, err = l.kept(ctx, w, digest); err != nil {
		return nil, err
	}
	for _, k := range l.e.cfg.Depot.trusted {
		o.Trusted = append(o.Trusted, string(k))
	}
	return o, nil
}

// kept lists what the cache of a site must not lose while the package with this digest is installed.
func (l *siteLoop) kept(ctx context.Context, w reconcile.World, digest string) ([]string, error) {
	if l.e.cfg.Supply.CacheBytes == 0 {
		return nil, nil // it loses nothing
	}
	keep, err := l.ordered(ctx, w)
	if err != nil {
		return nil, err
	}
	keep = append(keep, w.Site.PackageDigest)
	for _, n := range w.Needs {
		keep = append(keep, n.Digest)
	}
	slices.Sort(keep)
	return slices.DeleteFunc(slices.Compact(keep), func(d string) bool { return d == "" || d == digest }), nil
}

// pilotSpec fills in what a pilot job needs: its shape, and in the order its token and the way in, to corrald
// and, if its cluster is one of HTCondor's, to the pool.
func (l *siteLoop) pilotSpec(ctx context.Context, w reconcile.World, job corral.Job, s *gridsite.JobSpec, o *order.Order) error {
	g := find(w.Glideins, job.Glidein)
	if g == nil {
		return corral.Errorf(corral.NotFound, "%s has no glidein any more", job.Name())
	}
	pilot, err := pilotProgram(w.Site)
	if err != nil {
		return err
	}
	addresses, digest, err := l.e.cfg.Address.For(w.Site)
	if err != nil {
		return fmt.Errorf("finding the way in from site %s: %w", w.Site.Name, err)
	}
	relays := l.relayed(w, *g)
	if g.Broker == corral.BrokerRelay {
		addresses = nil
	}
	for _, r := range relays {
		addresses = append(addresses, "relay:"+r)
	}
	s.Program, s.Argv = pilot, []string{"run"}
	s.Hosts, s.CPUs, s.GPUs, s.MemoryMiB, s.Walltime = g.Hosts, g.CPUs, g.GPUs, g.MemoryMiB, time.Duration(g.Walltime)
	setOptions(s, w.Site, g.BatchOptions)
	o.Pilot = &order.Pilot{
		Token:      string(l.e.cfg.Key.Token(job.Tag)),
		Addresses:  addresses,
		CertDigest: digest,
		Hosts:      g.Hosts,
		CPUs:       g.CPUs,
		MemoryMiB:  g.MemoryMiB,
		Walltime:   g.Walltime,
		Idle:       g.Idle,
	}
	n, ok := w.Needs[g.Cluster]
	if !ok {
		return nil
	}
	if n.Digest == "" {
		return hopeless(n.Unfit)
	}
	secret, _, err := l.mint(ctx, *g, job)
	if err != nil {
		return err
	}
	s.Files[order.PoolToken] = []byte(secret)
	o.Pilot.Condor = condorOrder(w.Site, *g, job, n)
	if !n.Cluster.Attached {
		o.Pilot.Condor.Relays = relays
	}
	return nil
}
