package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// silences is the number of heartbeats that a worker may miss before it counts as unreachable although its connection
// has not ended: if a network drops packets, it takes a whole lease to detect that a connection has ended.
const silences = 3

// Expected returns the workers that Workers returns, and also workers that were given up because they were silent for
// longer than their lease but whose attempt may still be running: they may only be cut off, and may reconnect.
// Unreachable workers are not Connected.
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
