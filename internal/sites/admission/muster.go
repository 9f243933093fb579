package admission

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// Expected returns a cluster's workers like Workers, and also those that may return after their connection was lost,
// which are not Connected. In an HTCondor pool these are workers whose ads have disappeared and whose pilot has lost
// its connection: a worker that leaves normally withdraws its ad, and its pilot reports it.
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

// Missing reports whether any worker or pilot of any cluster may be unreachable. If not, the caller need not check
// further.
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

// Lost returns the attempts of live whose pilots have lost their connection. It forgets the lost connections of all
// other attempts, which have ended.
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
