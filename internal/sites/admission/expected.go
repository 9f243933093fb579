package admission

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
)

// Expected returns the workers of a cluster as Workers does, and those that may come back after their connection was
// lost. Those that are out of reach are not Connected. Of an HTCondor pool these are the ones whose ads have gone and
// whose pilot has lost its connection: a worker that leaves takes its ad with it, and its pilot says so.
func Expected(c *Clusters, id corral.ClusterID) (workers []corral.Worker) {
	if d := c.existing(id); d != nil {
		workers = dispatch.Expected(d)
	}
	if c.pools == nil {
		return workers
	}
	cut := c.links.Cut()
	for _, w := range c.pools.Workers(id) {
		if since, lost := cut[w.Attempt]; lost && !w.Connected {
			w.SeenAt = since
		} else if !w.Connected {
			continue
		}
		workers = append(workers, w)
	}
	return workers
}

// Missing reports whether any worker or pilot of any cluster may be out of reach: if none is, nothing else need be
// looked at.
func Missing(c *Clusters) bool {
	if len(c.links.Cut()) > 0 {
		return true
	}
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.dispatchers))
	c.mu.Unlock()
	return slices.ContainsFunc(all, func(d *dispatch.Dispatcher) bool {
		return slices.ContainsFunc(dispatch.Expected(d), func(w corral.Worker) bool { return !w.Connected })
	})
}

// Lost returns the attempts among these whose pilots have lost their connection, and forgets all others: they are over.
func Lost(c *Clusters, live map[corral.JobID]bool) map[corral.JobID]bool {
	lost := map[corral.JobID]bool{}
	for attempt := range c.links.Cut() {
		if live[attempt] {
			lost[attempt] = true
		} else {
			c.links.Forget(attempt)
		}
	}
	return lost
}
