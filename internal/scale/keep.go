package scale

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/matching"
	"github.com/corral-pilot/corral/internal/store"
)

// Label is the label by which a glidein says for which cluster's scale it was asked.
const Label = "scale"

const (
	lookEvery  = time.Second     // at an embedded queue, which is in this process
	queryEvery = 5 * time.Second // at a schedd's: a question costs a process
)

// Clusters say what waits in a cluster's queue, and which workers it has.
type Clusters interface {
	Waiting(ctx context.Context, cluster corral.ClusterID) ([]matching.Class, error)
	Workers(cluster corral.ClusterID) []corral.Worker
}

// A keeper carries out the scales of all clusters. What it remembers beside the store only delays: a corrald that was
// started again keeps spare pilots, and leaves sites alone whose pilots fail, from then on.
type keeper struct {
	lg       *slog.Logger
	db       *store.DB
	clusters Clusters
	machine  corral.SiteQueue

	next   map[corral.ClusterID]time.Time // look
	spare  map[corral.ClusterID]spares
	own    map[corral.GlideinID]corral.SiteID // live at the last look
	failed map[corral.SiteID]failures
}

// spares are a cluster's own pilots that nothing needs, with the time since when.
type spares map[corral.GlideinID]time.Time

// failures are pilots in a row that failed at a site.
type failures struct {
	n    int
	last time.Time
}

// Keep carries out the scales of all clusters until ctx ends. machine is this machine, as the queue that the batch
// system fork has here.
func Keep(ctx context.Context, lg *slog.Logger, db *store.DB, clusters Clusters, machine corral.SiteQueue) error {
	k := &keeper{
		lg: lg, db: db, clusters: clusters, machine: machine, next: map[corral.ClusterID]time.Time{},
		spare: map[corral.ClusterID]spares{}, own: map[corral.GlideinID]corral.SiteID{},
		failed: map[corral.SiteID]failures{},
	}
	for {
		changed := db.Changed(store.Subject{Object: corral.ObjectCluster})
		scales, err := store.Read(ctx, db, (*store.Tx).Scales)
		for _, s := range scales {
			if err == nil {
				err = k.due(ctx, s)
			}
		}
		if err != nil && ctx.Err() == nil {
			lg.Error("scaling clusters: it is tried again", "error", err)
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

// due looks at a cluster if it is time to. A look that leads to nothing new only reads.
func (k *keeper) due(ctx context.Context, s corral.Scale) error {
	if time.Now().Before(k.next[s.Cluster]) {
		return nil
	}
	waiting, err := k.clusters.Waiting(ctx, s.Cluster)
	if err != nil {
		k.next[s.Cluster] = time.Now().Add(queryEvery)
		return k.report(ctx, s, fmt.Sprintf("what waits is not known: %v", err))
	}
	o := outlook{scale: s, waiting: waiting, workers: k.clusters.Workers(s.Cluster)}
	var d Decision
	err = k.db.View(ctx, func(tx *store.Tx) (err error) {
		d, err = k.decide(tx, &o)
		return err
	})
	k.next[s.Cluster] = time.Now().Add(lookEvery)
	if o.cluster.Kind == corral.Condor {
		k.next[s.Cluster] = time.Now().Add(queryEvery)
	}
	k.remember(s.Cluster, d)
	if err != nil || len(d.Asks)+len(d.Withdraw) == 0 && d.Report == s.Report {
		return err
	}
	return k.carryOut(ctx, o)
}

// carryOut decides once more, in the transaction that asks: glideins that were made meanwhile count.
func (k *keeper) carryOut(ctx context.Context, o outlook) error {
	return k.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		if _, err := tx.Scale(o.scale.Cluster); corral.KindOf(err) == corral.NotFound {
			return nil // it was ended meanwhile
		}
		d, err := k.decide(tx, &o)
		if err != nil {
			return err
		}
		for _, a := range d.Asks {
			if err := k.ask(tx, o, a); err != nil {
				if corral.KindOf(err) == corral.Internal {
					return err
				}
				d.Report += fmt.Sprintf("; site %s refuses: %v", a.Site, err)
				break
			}
		}
		for _, id := range d.Withdraw {
			if _, err := tx.AskGlidein(id, corral.AskDrain, "no job needs it"); err != nil {
				return err
			}
		}
		return tx.ReportScale(o.scale.Cluster, d.Report)
	})
}

// report notes why nothing can be decided.
func (k *keeper) report(ctx context.Context, s corral.Scale, why string) error {
	if s.Report == why {
		return nil
	}
	return k.db.Write(ctx, store.Actor, func(tx *store.Tx) error {
		err := tx.ReportScale(s.Cluster, why)
		if corral.KindOf(err) == corral.NotFound {
			return nil
		}
		return err
	})
}

// remember notes since when pilots of a cluster are spare.
func (k *keeper) remember(cluster corral.ClusterID, d Decision) {
	before, after := k.spare[cluster], spares{}
	for _, id := range d.Spare {
		if after[id] = before[id]; after[id].IsZero() {
			after[id] = time.Now()
		}
	}
	k.spare[cluster] = after
}

// Release ends a cluster's scale and lets its pilots go, in one transaction: workers finish what they run.
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

func labels(s corral.Scale) map[string]string {
	return map[string]string{Label: strconv.FormatInt(int64(s.Cluster), 10)}
}
