package planning

import (
	"context"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
)

// facts reads the known facts about sites, for a request with the given assumptions.
func (d *Desk) facts(ctx context.Context, sites []corral.Site, given plan.WhatIf) (all []provision.Facts, err error) {
	err = d.db.Request(ctx).View(ctx, func(tx *store.Tx) error {
		for _, s := range sites {
			f, err := provision.ReadFacts(tx, s, d.machine, 0)
			if err != nil {
				return err
			}
			all = append(all, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, d.stand(ctx, all, given)
}

// stand looks at the queues about whose waits nothing else is known, unless the request gives the waits. A queue
// that cannot be seen remains unknown.
func (d *Desk) stand(ctx context.Context, all []provision.Facts, given plan.WhatIf) error {
	if given.GivesWaits() {
		return nil
	}
	var wg sync.WaitGroup
	for i := range all {
		f := &all[i]
		if f.Site.State != corral.SiteReady {
			continue
		}
		f.Stands = map[string]provision.Standing{}
		var mu sync.Mutex // guards f.Stands
		for _, queue := range f.Unseen() {
			wg.Go(func() {
				if stands, known := d.standing(ctx, f.Site, queue); known {
					mu.Lock()
					defer mu.Unlock()
					f.Stands[queue.Name] = stands
				}
			})
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

// standing looks at a queue. If its jobs are hidden or cannot be listed, the batch system's own prediction is better. A
// site that does not answer is not asked again.
func (d *Desk) standing(ctx context.Context, site corral.Site, queue corral.SiteQueue) (
	s provision.Standing, known bool,
) {
	b, err := d.queues.Backlog(ctx, site, queue.Name)
	if err == nil {
		s, known = provision.StandingOf(b), true
	}
	if err == nil && len(b.Notes) == 0 || err != nil && corral.KindOf(err) != corral.Unsatisfiable {
		return s, known
	}
	shapes, waits, source, err := d.queues.Forecast(ctx, site, queue.Name, provision.Tried(queue))
	if err == nil && len(waits) > 0 {
		return provision.Predicted(shapes, waits, source), true
	}
	return s, known
}

// present lists the workers that a plan uses before it requests others.
func (d *Desk) present(ctx context.Context, cluster corral.Cluster) ([]plan.Present, error) {
	glideins, err := d.glideins(ctx, cluster.ID)
	all, _ := provision.Present(glideins, d.clusters.Workers(cluster.ID), time.Now())
	return all, err
}

// glideins lists the live glideins of a cluster.
func (d *Desk) glideins(ctx context.Context, cluster corral.ClusterID) ([]corral.Glidein, error) {
	return store.Read(ctx, d.db.Request(ctx), func(tx *store.Tx) ([]corral.Glidein, error) {
		return tx.Glideins(store.GlideinFilter{Cluster: cluster, Live: true, InBrief: true})
	})
}
