package draft

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/provision"
	"github.com/corral-pilot/corral/internal/request"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
)

// latestWaits is how many of a site's waits are looked at.
const latestWaits = 1000

// facts reads what is known of sites.
func (d *Desk) facts(ctx context.Context, sites []corral.Site) (all []provision.Facts, err error) {
	err = d.db.View(ctx, func(tx *store.Tx) error {
		for _, s := range sites {
			f := provision.Facts{Site: s, Machine: request.Machine(s, d.machine)}
			if f.Waits, err = tx.Waits(store.WaitFilter{Site: s.ID, Last: latestWaits}); err != nil {
				return err
			}
			if f.Load, err = tx.Load(s.ID); err != nil {
				return err
			}
			if f.Ledger, err = tx.Ledger(s.ID); err != nil {
				return err
			}
			all = append(all, f)
		}
		return nil
	})
	return all, err
}

// present lists the workers that a plan uses before it asks for others.
func (d *Desk) present(ctx context.Context, cluster corral.Cluster) ([]plan.Present, error) {
	glideins, err := store.Read(ctx, d.db, func(tx *store.Tx) ([]corral.Glidein, error) {
		return tx.Glideins(store.GlideinFilter{Cluster: cluster.ID, Live: true, InBrief: true})
	})
	all, _ := provision.Present(glideins, d.clusters.Workers(cluster.ID), time.Now())
	return all, err
}
