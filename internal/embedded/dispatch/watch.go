package dispatch

import (
	"maps"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// watch runs in the dispatcher's own goroutine: it checks the clock often enough for leases and recalls, and does all
// work that depends only on time.
func (d *Dispatcher) watch() {
	defer close(d.done)
	tick := time.NewTicker(min(d.cfg.Heartbeat, matching.RecallAfter) / 2)
	defer tick.Stop()
	for {
		select {
		case <-d.quit:
			return
		case now := <-tick.C:
			if d.step(now) {
				d.cfg.OnChange()
			}
		}
	}
}

// step does all work that is due at now, and reports whether the result of Workers changed. A worker that was silent
// for lease and margin is given up: by then it has killed its tasks, because its own lease began earlier and has no
// margin.
func (d *Dispatcher) step(now time.Time) (changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.forgiveLocked(now)
	var lost []*member
	for _, m := range d.members {
		if now.Sub(m.about.SeenAt) > d.cfg.Lease+d.cfg.Margin {
			lost = append(lost, m)
			continue
		}
		if now.After(d.claims) {
			m.disclaim()
		}
		m.recall(now)
	}
	maps.DeleteFunc(d.missing, func(_ string, w corral.Worker) bool { return now.After(w.EndsAt) })
	for _, m := range lost {
		if m.instance != "" {
			d.missing[m.slot.ID] = m.worker()
		}
		d.loseLocked(m, "no sign of life of its worker for longer than its lease")
	}
	d.matchLocked(now)
	return len(lost) > 0
}

// forgiveLocked discounts the time during which this process was suspended: workers received no replies then, and their
// messages from that time have not been read yet.
func (d *Dispatcher) forgiveLocked(now time.Time) {
	if still := now.Sub(d.stepped); still > d.cfg.Margin {
		for _, m := range d.members {
			m.seen(m.about.SeenAt.Add(still))
		}
		d.claims = d.claims.Add(still)
	}
	d.stepped = now
}

// disclaim makes the worker kill jobs that no run claimed in time: their run has ended, or never belonged to this
// cluster.
func (m *member) disclaim() {
	found := false
	for _, e := range m.strangers {
		found = found || !e.cancelled
		e.cancelled = true
	}
	if found {
		m.sendCancels()
	}
}

// recall requests the return of jobs that wait behind one that runs longer than estimated.
func (m *member) recall(now time.Time) {
	var keys []execution.Key
	for _, e := range m.slot.Overdue(now) {
		if e.sent && !e.recalled && !e.cancelled && m.held[e.job.Key()] == e {
			e.recalled = true
			keys = append(keys, e.job.Key())
		}
	}
	if len(keys) > 0 {
		m.send(&wire.Message{Type: wire.TypeRecall, Keys: keys})
	}
}
