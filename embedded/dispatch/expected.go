package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// silences is how many heartbeats a worker may miss before it counts as unreachable although its connection has not
// ended: where packets are dropped, detecting the end takes a whole lease.
const silences = 3

// Expected returns the workers that Workers returns, and those that were given up because they were silent for longer
// than their lease while their attempt may still be running: they may be cut off and come back. Unreachable workers are
// not Connected.
func Expected(d *Dispatcher) []corral.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.forgiveLocked(now)
	workers := slices.Collect(maps.Values(d.missing))
	for i := range workers {
		workers[i].Connected = false // its connection may still have been open when it was given up
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
