package dispatch

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// pilotEnded is the reason for jobs whose workers ended with their pilot.
const pilotEnded = "its pilot has ended, and its worker with it"

// Ended records that all processes of the attempt with this tag have ended. The jobs of its workers need not wait for
// the workers' leases to end. If a worker is still connected, the messages that it has sent are read first; the end of
// its connection follows.
func (d *Dispatcher) Ended(tag string) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.ended[tag] = true
	maps.DeleteFunc(d.missing, func(id string, _ corral.Worker) bool { return strings.HasPrefix(id, tag+"/") })
	lost := false
	for _, m := range slices.Clone(d.members) { // the loop removes members
		if strings.HasPrefix(m.slot.ID, tag+"/") {
			m.ended = true
			if lost = lost || m.conn == nil; m.conn == nil {
				d.loseLocked(m, pilotEnded)
			}
		}
	}
	if lost {
		d.matchLocked(time.Now())
	}
	d.mu.Unlock()
	if lost {
		d.cfg.OnChange()
	}
}
