package dispatch

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// These functions act on single workers. They are used by package stream, whose workers are batch jobs that start and
// end one by one. The methods of the Dispatcher act on all workers of an attempt together.

// Retire drains a connected worker: it finishes its running jobs and leaves.
func Retire(d *Dispatcher, worker string) {
	d.mu.Lock()
	if m := d.members.get(worker); m != nil && m.conn != nil {
		m.drain(&d.matcher)
		m.send(wire.AskMessage(corral.AskDrain))
	}
	d.mu.Unlock()
	d.cfg.OnChange()
}

// Bury records that all processes of a worker have ended: its jobs need not wait for its lease to end. A connected
// worker is not affected.
func Bury(d *Dispatcher, worker string) {
	d.mu.Lock()
	if m := d.members.get(worker); m != nil && m.conn == nil && !d.closed {
		d.loseLocked(m, "its worker has ended")
		d.matchLocked(time.Now())
	}
	d.mu.Unlock()
	d.cfg.OnChange()
}

// Absent returns the ids of disconnected workers that may reconnect: workers that lost their connection, and workers
// that held jobs before corrald was restarted.
func Absent(d *Dispatcher) (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		if m.conn == nil {
			ids = append(ids, m.slot.ID)
		}
	}
	return ids
}

// Behind returns how many CPUs are requested by the jobs that wait at connected workers behind other jobs.
func Behind(d *Dispatcher) (cpus int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		if m.conn == nil {
			continue
		}
		for _, e := range m.slot.Waiting() {
			cpus += max(1, e.job.CPUs)
		}
	}
	return cpus
}
