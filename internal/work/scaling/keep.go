package scaling

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	lookEvery  = time.Second     // for an embedded queue, which is in this process
	queryEvery = 5 * time.Second // for a schedd's queue, where each query starts a process
)

// Clusters provides the waiting jobs of a cluster's queue, and the cluster's workers.
type Clusters interface {
	Waiting(ctx context.Context, cluster corral.ClusterID) ([]matching.Class, error)
	Workers(cluster corral.ClusterID) []corral.Worker
}

// A keeper holds the data shared by all clusters.
type keeper struct {
	lg       *slog.Logger
	db       *store.DB
	clusters Clusters
	machine  corral.SiteQueue
}

// Keep carries out the scales of all clusters until ctx ends. machine describes this machine as the queue of the local
// fork batch system. Each scaled cluster has its own goroutine, so that a cluster whose pool does not respond does not
// delay the others.
func Keep(ctx context.Context, lg *slog.Logger, db *store.DB, clusters Clusters, machine corral.SiteQueue) error {
	k := &keeper{lg, db, clusters, machine}
	var all sync.WaitGroup
	defer all.Wait()
	ended := map[corral.ClusterID]chan struct{}{} // :: cluster → closed when its goroutine ends
	for {
		changed := db.Changed(store.Subject{Object: corral.ObjectCluster})
		scales, err := store.ReadWhole(ctx, db, (*store.WholeTx).Scales)
		if err != nil && ctx.Err() == nil {
			lg.Error("looking for scaled clusters failed; retrying", "error", err)
		}
		for _, s := range scales {
			if running(ended[s.Cluster]) {
				continue
			}
			done := make(chan struct{})
			ended[s.Cluster] = done
			all.Go(func() {
				defer close(done)
				k.scaler(s).run(ctx)
			})
		}
		var tick <-chan time.Time
		if len(scales) > 0 || err != nil {
			tick = time.After(lookEvery)
		}
		select {
		case <-changed:
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}

func running(ended chan struct{}) bool {
	select {
	case <-ended:
		return false
	default:
		return ended != nil
	}
}

// A scaler carries out the scale of one cluster. Losing the data that a scaler keeps outside the store only causes
// delays: after a restart of corrald, the periods for which spare pilots are kept and sites with failing pilots are
// avoided start again.
type scaler struct {
	*keeper
	db      store.Owner // the scale's
	cluster corral.ClusterID
	spare   map[corral.GlideinID]time.Time     // own unneeded pilots :: since when they have been unneeded
	own     map[corral.GlideinID]corral.SiteID // own pilots that were live at the last check
	failed  map[corral.SiteID]failures
	waiting time.Time                          // since when some job has been waiting
	had     map[corral.SiteID]corral.Resources // the largest resources that own workers turned out to have at the site
	less    map[corral.SiteID]corral.Resources // resources at the last check that were below both the request and had
}

// failures counts the consecutive pilots that failed at a site.
type failures struct {
	n    int
	last time.Time
}

func (k *keeper) scaler(s corral.Scale) *scaler {
	return &scaler{
		keeper: k, db: k.db.Owner(s.Owner), cluster: s.Cluster, spare: map[corral.GlideinID]time.Time{},
		own: map[corral.GlideinID]corral.SiteID{}, failed: map[corral.SiteID]failures{},
		had: map[corral.SiteID]corral.Resources{}, less: map[corral.SiteID]corral.Resources{}, waiting: time.Now(),
	}
}

// run checks the cluster repeatedly until its scale or ctx ends.
func (k *scaler) run(ctx context.Context) {
	for {
		pause, err := k.look(ctx)
		switch {
		case ctx.Err() != nil, corral.KindOf(err) == corral.NotFound:
			return
		case err != nil:
			k.lg.Error("scaling a cluster failed; retrying", "cluster", k.cluster, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// look compares the waiting jobs with the workers once, and carries out the resulting decision. If nothing changes, it
// only reads. It returns the time until the next check, or a NotFound error if the cluster is no longer scaled.
func (k *scaler) look(ctx context.Context) (next time.Duration, err error) {
	var o look
	err = k.db.View(ctx, func(tx *store.Tx) error { return o.read(tx, k.cluster) })
	if err != nil {
		return queryEvery, err
	}
	next = lookEvery
	if o.cluster.Kind == corral.Condor {
		next = queryEvery
	}
	// The workers are read first: a job that a worker takes between the two reads is then no longer waiting, and is not
	// counted anywhere.
	o.workers = k.clusters.Workers(k.cluster)
	if o.waiting, err = k.clusters.Waiting(ctx, k.cluster); err != nil {
		return queryEvery, k.report(ctx, o.scale, fmt.Sprintf("the waiting jobs are not known: %v", err))
	}
	var d Decision
	err = k.db.View(ctx, func(tx *store.Tx) (err error) {
		d, err = k.decide(tx, &o)
		return err
	})
	if err != nil {
		return next, err
	}
	k.remember(d)
	if len(d.Asks)+len(d.Withdraw) == 0 && d.Report == o.scale.Report {
		return next, nil
	}
	return next, k.carryOut(ctx, o)
}

// carryOut decides again, in the transaction that makes the requests, so that glideins created in the meantime count.
func (k *scaler) carryOut(ctx context.Context, o look) error {
	return k.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		d, err := k.ask(tx, &o)
		for _, id := range d.Withdraw {
			if err == nil {
				_, err = tx.AskGlidein(id, corral.AskDrain, "no job needs it")
			}
		}
		if err != nil {
			return err
		}
		return tx.ReportScale(k.cluster, d.Report)
	})
}

// ask decides, and creates the glideins of the requested workers. A site that refuses a glidein is excluded from this
// check, and the decision is made again without that site.
func (k *scaler) ask(tx *store.Tx, o *look) (d Decision, err error) {
	for again := true; again; {
		if d, err = k.decide(tx, o); err != nil {
			return d, err
		}
		again = false
		for _, a := range d.Asks {
			if o.refused[a.Site] != "" {
				continue
			}
			err := k.create(tx, *o, a, d.Report)
			if err != nil && corral.KindOf(err) == corral.Internal {
				return d, err
			}
			if err != nil {
				o.refuse(a.Site, err)
				again = true
			}
		}
	}
	return d, nil
}

// report records why no decision is possible.
func (k *scaler) report(ctx context.Context, s corral.Scale, why string) error {
	if s.Report == why {
		return nil
	}
	return k.db.Write(ctx, store.Actor, func(tx *store.Tx) error { return tx.ReportScale(s.Cluster, why) })
}

// remember records since when pilots have been spare.
func (k *scaler) remember(d Decision) {
	before := k.spare
	k.spare = map[corral.GlideinID]time.Time{}
	for _, id := range d.Spare {
		if k.spare[id] = before[id]; before[id].IsZero() {
			k.spare[id] = time.Now()
		}
	}
}

// Release ends a cluster's scale and releases its pilots, in one transaction: workers finish their running tasks.
func Release(tx *store.Tx, s corral.Scale, reason string) error {
	glideins, err := tx.Glideins(store.GlideinFilter{Cluster: s.Cluster, Labels: labels(s), Live: true})
	for _, g := range glideins {
		if err == nil {
			_, err = tx.AskGlidein(g.ID, corral.AskDrain, "the cluster is not scaled any more: "+reason)
		}
	}
	if err != nil {
		return err
	}
	return tx.EndScale(s, reason)
}

// labels returns the labels of a scale's glideins.
func labels(s corral.Scale) map[string]string {
	return map[string]string{store.ScaleLabel: label(s.Cluster)}
}

func label(cluster corral.ClusterID) string { return strconv.FormatInt(int64(cluster), 10) }
