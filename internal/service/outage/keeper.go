// Package outage records, in the histories of glideins and runs, the time since which their workers have been
// unreachable.
//
// A muster decides which of the clusters' known workers are unreachable. A Keeper writes one entry when an outage
// begins and one when it ends, and keeps the present outages in memory: like the number of registered workers, they
// are not stored. After a restart the histories show what was last recorded.
package outage

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/store"
)

// every is the interval of a Keeper's checks: a fraction of the minimum duration of an outage.
const every = settles / 5

// actor is the actor of the entries.
const actor = "corrald"

// A Keeper tracks unreachable workers. Its methods may be called from any goroutine.
type Keeper struct {
	lg       *slog.Logger
	db       *store.DB
	clusters *admission.Clusters
	began    time.Time // entries before this time are from an earlier corrald

	mu   sync.Mutex // guards said
	said map[store.Subject]corral.Outage
}

// New returns a keeper without outages.
func New(lg *slog.Logger, db *store.DB, clusters *admission.Clusters) *Keeper {
	return &Keeper{lg: lg, db: db, clusters: clusters, began: time.Now(), said: map[store.Subject]corral.Outage{}}
}

// Of returns the outage of a glidein or a run, or nil if there is none.
func (k *Keeper) Of(object string, id int64) *corral.Outage {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o, yes := k.said[store.Subject{Object: object, ID: id}]; yes {
		return &o
	}
	return nil
}

// Run checks until ctx ends. Failed reads and writes are tried again at the next check.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	recalled := false
	for {
		var err error
		if !recalled {
			err = k.recall(ctx)
			recalled = err == nil
		}
		if err == nil {
			err = k.Look(ctx, time.Now())
		}
		if err != nil && ctx.Err() == nil {
			k.lg.Warn("looking for unreachable workers", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// recall reads the outages of live objects that an earlier corrald recorded.
func (k *Keeper) recall(ctx context.Context) error {
	said := map[store.Subject]corral.Outage{}
	err := k.db.Whole().View(ctx, func(tx *store.WholeTx) error {
		w, err := read(tx)
		if err != nil {
			return err
		}
		for _, of := range w.subjects() {
			if o, yes, err := last(tx, of); err != nil {
				return err
			} else if yes {
				said[of] = o
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading earlier outages: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.said = said
	return nil
}

// last returns the outage that has not ended according to an object's history; yes is false if there is none.
func last(tx *store.WholeTx, of store.Subject) (o corral.Outage, yes bool, err error) {
	entries, err := tx.History(of.Object, of.ID, store.Page{})
	for _, e := range entries {
		switch e.Event {
		case OutOfReach:
			o, yes = parse(e.Reason)
		case WithinReach:
			yes = false
		}
	}
	return o, yes, err
}

// Look checks once and records changes. If all workers are reachable now and were before, nothing is read, because
// otherwise the store would be queried every two seconds about ten thousand healthy glideins.
func (k *Keeper) Look(ctx context.Context, now time.Time) error {
	k.mu.Lock()
	was := maps.Clone(k.said)
	k.mu.Unlock()
	if len(was) == 0 && !admission.Missing(k.clusters) {
		return nil
	}
	w, err := store.ReadWhole(ctx, k.db, read)
	if err != nil {
		return fmt.Errorf("reading live glideins and runs: %w", err)
	}
	t := turn{now: now, was: was, is: map[store.Subject]corral.Outage{}}
	lost := admission.Lost(k.clusters, w.attempts())
	workers, total := map[corral.ClusterID][]corral.Worker{}, map[corral.ClusterID]tally{}
	for _, g := range w.glideins {
		if _, asked := workers[g.Cluster]; !asked {
			workers[g.Cluster] = admission.Expected(k.clusters, g.Cluster)
		}
		m := musterOf(g, workers[g.Cluster], lost)
		m.was = was[glideinOf(g)]
		m.blind = m.blind || live(g) && m.was.Since.Before(k.began)
		o := m.outage(now)
		t.tell(g.Owner, glideinOf(g), o, m.connected())
		total[g.Cluster] = total[g.Cluster].add(o, m.connected())
	}
	for _, r := range w.runs {
		o := total[r.Cluster].Outage
		if was := was[runOf(r)]; was.Workers > 0 {
			o.Since = was.Since
		}
		t.tell(r.Owner, runOf(r), o, total[r.Cluster].connected)
	}
	return k.say(ctx, t.is, t.news)
}

// An entry is a history entry to be written. All are written together, so that a glidein and the runs that rely on it
// never contradict each other.
type entry struct {
	owner         string
	of            store.Subject
	event, reason string
}

// say writes the entries and then updates the known outages. If the write fails, they stay unchanged and the next
// check finds the same news: no entry is left out, and none is written twice.
func (k *Keeper) say(ctx context.Context, is map[store.Subject]corral.Outage, news []entry) error {
	if len(news) > 0 {
		err := k.db.Whole().Write(ctx, actor, func(tx *store.WholeTx) error {
			for _, e := range news {
				if err := tx.Owner(e.owner).Log(e.of.Object, e.of.ID, e.event, e.reason); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("recording outages: %w", err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.said = is
	return nil
}
