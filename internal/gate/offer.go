package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/worker"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// Offer says what could take a task: the workers present, and those that glideins will bring.
func (c *Clusters) Offer(ctx context.Context, id corral.ClusterID) (execution.Offer, error) {
	now := time.Now() // once: of what is present and of what is to come
	var offer execution.Offer
	present := map[corral.JobID]int{} // :: attempt → cpus registered
	for _, w := range c.Workers(id) {
		offer.Capacities = append(offer.Capacities, execution.CapacityOf(w, now))
		if w.Draining || !w.Connected {
			continue
		}
		offer.CPUs += w.CPUs
		present[w.Attempt] += w.CPUs
	}
	var glideins []corral.Glidein
	err := c.db.View(ctx, func(tx *store.Tx) (err error) {
		glideins, err = tx.Glideins(store.GlideinFilter{Cluster: id, Live: true, InBrief: true})
		return err
	})
	if err != nil {
		return offer, fmt.Errorf("listing what is requested for cluster %d: %w", id, err)
	}
	for _, g := range glideins {
		if left, ok := toCome(g, present, now); ok {
			c := execution.Capacity{CPUs: g.CPUs, MemoryMiB: g.MemoryMiB, Left: left}
			offer.Capacities = append(offer.Capacities, c)
		}
	}
	return offer, nil
}

// startUp is how long a pilot may take from its start until its workers may take tasks.
const startUp = time.Second

// toCome returns the longest estimate that a worker of g may take which is still to come, of an attempt
// that is alive or of one that may follow; not ok if none is. present says how many cpus of each attempt
// are registered.
func toCome(g corral.Glidein, present map[corral.JobID]int, now time.Time) (left time.Duration, ok bool) {
	if g.State.Terminal() || g.Asked != corral.AskNothing {
		return 0, false
	}
	walltime := time.Duration(g.Walltime)
	var stays time.Duration // of the worker that stays longest
	for _, a := range g.Live() {
		switch {
		case a.Asked != corral.AskNothing || present[a.ID] >= g.CPUsOf(a):
		case a.State == corral.JobRunning:
			stays = max(stays, walltime-now.Sub(a.StartedAt))
		default:
			stays = walltime
		}
	}
	if verdict, _, _ := g.NextIfExpired(now); verdict == resubmit.Again {
		stays = walltime
	}
	left = worker.Longest(stays-order.Reserve(walltime)) - startUp
	return left, left > 0
}
