package dispatch

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
)

// These functions are about single workers, for the package that has them come and go one by one: stream, with its
// worker jobs. The workers of an attempt are treated together, by methods of the Dispatcher.

// Retire has a worker that is connected drain: it finishes what it runs, and leaves.
func Retire(d *Dispatcher, worker string) {
	d.mu.Lock()
	if m := d.members.get(worker); m != nil && m.conn != nil {
		m.drain(&d.matcher)
		m.send(wire.AskMessage(corral.AskDrain))
	}
	d.mu.Unlock()
	d.cfg.OnChange()
}

// Bury says that nothing of a worker runs any more: what it had need not wait for its lease. One that is connected is
// left alone.
func Bury(d *Dispatcher, worker string) {
	d.mu.Lock()
	if m := d.members.get(worker); m != nil && m.conn == nil && !d.closed {
		d.loseLocked(m, "its worker has ended")
		d.matchLocked(time.Now())
	}
	d.mu.Unlock()
	d.cfg.OnChange()
}

// Absent returns the ids of workers without a connection that may still come back: those that lost it, and those that
// had jobs before corrald was started again.
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

// Behind is how many cpus the jobs want that wait at connected workers, behind others.
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
