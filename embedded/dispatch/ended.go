package dispatch

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
)

// pilotEnded is the reason of jobs whose workers went with their pilot.
const pilotEnded = "its pilot has ended, and its worker with it"

// Ended says that nothing of the attempt with this tag runs any more. What its workers had need not wait for their
// leases. One that is still connected has said something that is to be read first; the end of its connection follows.
func (d *Dispatcher) Ended(tag string) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.ended[tag] = true
	maps.DeleteFunc(d.missing, func(id string, _ corral.Worker) bool { return strings.HasPrefix(id, tag+"/") })
	lost := false
	for _, m := range slices.Clone(d.members) { // some leave
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
