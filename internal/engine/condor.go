package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

// CheckGlidein returns an Unsatisfiable error if the catalog has no package with which workers at the site could join
// the cluster. Of a site or a cluster that is not known well enough yet it says nothing.
func (c *Catalog) CheckGlidein(ctx context.Context, site corral.Site, cluster corral.Cluster) error {
	if cluster.Kind != corral.Condor || site.Platform == (corral.Platform{}) {
		return nil
	}
	var n reconcile.Need
	err := c.db.View(ctx, func(tx *store.Tx) (err error) {
		n, err = needOf(tx, site, cluster)
		return err
	})
	if err == nil && n.Unfit != "" {
		return corral.Errorf(corral.Unsatisfiable, "%s", n.Unfit)
	}
	return err
}

// needOf chooses the worker package for a cluster at a site: the newest that runs there and is not newer than the
// pool. A worker that is newer joins its pool, and no job ever matches it.
func needOf(tx *store.Tx, site corral.Site, cluster corral.Cluster) (reconcile.Need, error) {
	n := reconcile.Need{Cluster: cluster}
	if cluster.Version == "" {
		return n, nil
	}
	all, err := tx.Packages(store.Filter{})
	if err != nil {
		return n, err
	}
	var fit []packages.Package
	var newer []string
	for _, p := range all {
		switch {
		case p.What != htcondor.Worker:
		case packages.CompareVersions(p.Version, cluster.Version) > 0:
			newer = append(newer, fmt.Sprintf("%s is newer than the pool's HTCondor %s", p.Name, cluster.Version))
		default:
			fit = append(fit, signedOf(p).Package)
		}
	}
	p, err := packages.Choose(site.Platform, fit)
	if err == nil {
		n.Package, n.Version, n.Digest = p.Name, p.Version, p.Digest
		return n, nil
	}
	why := append([]string{err.Error()}, newer...)
	if len(fit) == 0 {
		why[0] = fmt.Sprintf("none for %s/%s is in the catalog", site.Platform.OS, site.Platform.Arch)
	}
	n.Unfit = fmt.Sprintf("site %s needs a worker package of HTCondor for cluster %s: %s; `corral package build` makes one",
		site.Name, cluster.Name, strings.Join(why, "; "))
	return n, nil
}

// loadNeeds adds what glideins of HTCondor clusters need, and until when the tokens are good that wait with attempts.
func (l *siteLoop) loadNeeds(tx *store.Tx, w *reconcile.World) error {
	w.Lifetimes, w.Missed = l.e.cfg.Tokens, l.missed
	w.Needs, w.Tokens = map[corral.ClusterID]reconcile.Need{}, map[corral.JobID]reconcile.Token{}
	seen := map[corral.ClusterID]bool{}
	for _, g := range w.Glideins {
		if seen[g.Cluster] {
			continue
		}
		seen[g.Cluster] = true
		cluster, err := tx.Cluster(g.Cluster)
		if err != nil {
			return err
		}
		if cluster.Kind != corral.Condor {
			continue
		}
		if w.Needs[g.Cluster], err = needOf(tx, w.Site, cluster); err != nil {
			return err
		}
	}
	if len(w.Needs) == 0 {
		return nil
	}
	tokens, err := tx.PoolTokensWaiting(w.Site.ID)
	for _, t := range tokens { // those that end first first
		// A token was noted before it was brought to the site. Unless it was this loop that brought the
		// last one, the site may have any of them.
		since, placed := l.placed[t.Attempt]
		if _, known := w.Tokens[t.Attempt]; !known || placed {
			w.Tokens[t.Attempt] = reconcile.Token{Ends: t.EndsAt, Since: since}
		}
	}
	return err
}

// ordered lists the packages that attempts at the site were told to use. What they need may not be what an attempt
// would be told now: they wait in queues while pools are upgraded.
func (l *siteLoop) ordered(ctx context.Context, w reconcile.World) (digests []string, err error) {
	for _, g := range w.Glideins {
		if _, ok := w.Needs[g.Cluster]; !ok {
			continue
		}
		for _, a := range g.Live() {
			b, err := l.read(ctx, a, order.File)
			if err != nil {
				return nil, err
			}
			if o, err := order.Decode(b); err == nil && o.Pilot != nil && o.Pilot.Condor != nil { // else the site has none yet
				digests = append(digests, o.Pilot.Condor.Digest)
			}
		}
	}
	return digests, nil
}

// streamsSince is the HTCondor whose collector passes streams on between workers and schedds of which neither can be
// connected to.
const streamsSince = "25.12.0"

// condorOrder is what workers must know to join an HTCondor pool, beside their token.
func condorOrder(site corral.Site, g corral.Glidein, job corral.Job, n reconcile.Need) *order.Condor {
	broker := g.Broker
	if broker == "" {
		broker = corral.BrokerAuto
	}
	return &order.Condor{
		Package:   n.Package,
		Digest:    n.Digest,
		Collector: n.Cluster.Collector,
		Broker:    broker,
		CCB:       g.CCB,
		Schedd:    n.Cluster.ScheddAt,
		Streams:   len(g.CCB) == 0 && packages.CompareVersions(n.Version, streamsSince) >= 0, // the pool is not older
		Attached:  n.Cluster.Attached,
		Static:    g.Slots == corral.SlotsStatic,
		Cluster:   n.Cluster.Name,
		Site:      site.Name,
		Glidein:   g.ID,
		Attempt:   job.ID,
	}
}

// mintTime is how long a pool may take to make a token.
const mintTime = 10 * time.Second

// tokenless is why there is no token for an attempt now.
type tokenless string

func (t tokenless) Error() string { return string(t) }

// A retry is when somebody is asked again who did not do what he was asked.
type retry struct {
	at    time.Time
	pause time.Duration
	why   string
}

// mint makes a token for an attempt. A pool that gives none, with a tokenless error, is asked again later, while the
// rest of the site goes on; the attempt's history says so. The error is hopeless if workers must not have the only one.
func (l *siteLoop) mint(ctx context.Context, g corral.Glidein, job corral.Job) (secret string, ends time.Time, err error) {
	r := l.tokens[g.Cluster]
	asked := time.Now()
	if asked.Before(r.at) {
		return "", ends, tokenless(r.why)
	}
	now := asked.UTC()
	limited, cancel := context.WithTimeout(ctx, mintTime)
	defer cancel()
	lifetime := l.e.cfg.Tokens.Of(g, job, now)
	secret, ends, err = l.e.clusters.mint(limited, g.Cluster, job.ID, lifetime)
	switch {
	case err == nil:
		delete(l.tokens, g.Cluster)
		return secret, ends, l.minted(ctx, job, ends, now.Add(lifetime))
	case ctx.Err() != nil:
		return "", ends, ctx.Err()
	}
	why := "there is no token for the workers: " + err.Error()
	if why != r.why {
		if err := l.noteJob(ctx, job, "token", why); err != nil {
			return "", ends, err
		}
	}
	pause := min(max(2*r.pause, troubleMin), troubleMax)
	l.tokens[g.Cluster] = retry{at: asked.Add(pause), pause: pause, why: why} // not by the wall clock, which may be set back
	if corral.KindOf(err) == corral.Forbidden {
		return "", ends, hopeless(why)
	}
	return "", ends, tokenless(why)
}

// clockSkew is how much sooner than asked a token may end without anybody having shortened its life.
const clockSkew = time.Minute

// minted takes in a token that was made, and is not at the site yet. One that ends too soon is used: better than none
// is what the workers can do until then. The first of each attempt is told of.
func (l *siteLoop) minted(ctx context.Context, job corral.Job, ends, wanted time.Time) error {
	_, renewed := l.placed[job.ID]
	delete(l.placed, job.ID)
	if renewed || job.State != corral.JobNew || !ends.Add(clockSkew).Before(wanted) {
		return nil
	}
	return l.noteJob(ctx, job, "token", fmt.Sprintf("the pool's token for the workers ends at %s, where %s was asked for: the pool may refuse them after that",
		ends.UTC().Format(time.RFC3339), wanted.Format(time.RFC3339)))
}

// hasNoToken reports whether the pool of an attempt gave no token, and it is too early to ask it again.
func (l *siteLoop) hasNoToken(w reconcile.World, job corral.Job) bool {
	g := find(w.Glideins, job.Glidein)
	return g != nil && time.Now().Before(l.tokens[g.Cluster].at)
}

// renew puts a new token in the place of the one that waits with an attempt.
func (l *siteLoop) renew(ctx context.Context, w reconcile.World, a reconcile.Renew) error {
	g := find(w.Glideins, a.Job.Glidein)
	if g == nil {
		return nil // unreachable: that is whose attempt it is
	}
	if !l.take() {
		return nil
	}
	secret, ends, err := l.mint(ctx, *g, a.Job)
	var later tokenless
	var never hopeless
	if errors.As(err, &later) || errors.As(err, &never) { // the one that is there may do
		return nil
	}
	if err != nil {
		return err
	}
	if !ends.After(w.Tokens[a.Job.ID].Ends) { // what is there is as good
		l.placed[a.Job.ID] = time.Now().UTC()
		return nil
	}
	l.log(w.Site, a)
	if err := l.open(ctx, w.Site); err != nil {
		return err
	}
	if err := l.access.Head.Replace(ctx, a.Job.Tag, order.PoolToken, []byte(secret)); err != nil {
		return fmt.Errorf("replacing the token of %s: %w", a.Job.Name(), err)
	}
	l.placed[a.Job.ID] = time.Now().UTC()
	return l.noteJob(ctx, a.Job, "token", "it was replaced at the site, before it ended")
}

// noteJob writes a line into a job's history.
func (l *siteLoop) noteJob(ctx context.Context, job corral.Job, event, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error { return tx.Log(corral.ObjectJob, int64(job.ID), event, reason) })
}

// reportedLog writes what a pilot did into its attempt's history, if it had no link through which it could say so
// while it did it. Each line begins with its time.
func (l *siteLoop) reportedLog(tx *store.Tx, job corral.Job) error {
	r, ok := l.reports[job.Tag]
	if !ok || job.Kind != corral.PilotJob {
		return nil
	}
	if now, err := tx.Job(job.ID); err != nil || now.LeaseHolder != "" {
		return err
	}
	for _, line := range r.Log[:min(len(r.Log), maxTries)] {
		line = strings.ToValidUTF8(line[:min(len(line), maxTryBytes)], "?")
		if err := tx.Log(corral.ObjectJob, int64(job.ID), "pilot said", line); err != nil {
			return err
		}
	}
	return nil
}
