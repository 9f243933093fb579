package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// silences is how many heartbeats a worker may miss before it counts as out of reach, though its connection has not
// ended: where packets vanish, that takes a lease.
const silences = 3

// Expected returns the workers of d as Workers does, and those that were given up because they were silent for longer
// than their lease, while nothing says that their attempt has ended: they may be cut off, and come back. Those that are
// out of reach are not Connected.
func Expected(d *Dispatcher) []corral.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.forgiveLocked(now)
	workers := slices.Collect(maps.Values(d.missing))
	for i := range workers {
		workers[i].Connected = false // its connection may not have ended when it was given up
	}
	for _, m := range d.members {
		if m.instance == "" {
			continue
		}
		w := m.worker()
		w.Connected = w.Connected && now.Sub(w.SeenAt) <= silences*d.cfg.Heartbeat
		workers = append(workers, w)
	}
	return workers
}
