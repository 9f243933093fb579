package dispatch

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/matching"
)

// matchLocked gives queued jobs to workers that can take them: to those with these slots, or to all.
func (d *Dispatcher) matchLocked(now time.Time, only ...*matching.Slot[*entry]) {
	if d.closed {
		return
	}
	for slot, taken := range d.matcher.Match(now, only...) {
		d.assignLocked(d.members.get(slot.ID), taken)
	}
}

// assignLocked books jobs for m and has their intent recorded; dispatch follows.
func (d *Dispatcher) assignLocked(m *member, taken []*entry) {
	var byRun []*assignment // of jobs in a row that have the same run
	for _, e := range taken {
		m.held[e.job.Key()] = e
		if n := len(byRun); n == 0 || byRun[n-1].entries[0].job.Run != e.job.Run {
			byRun = append(byRun, &assignment{to: m})
		}
		a := byRun[len(byRun)-1]
		a.entries = append(a.entries, e)
	}
	for _, a := range byRun {
		d.feeds[a.entries[0].job.Run].tell(event{assigned: a})
	}
}

// returnLocked tells the sinks of jobs that no worker has any more.
func (d *Dispatcher) returnLocked(h *handBack) {
	byRun := map[corral.RunID]*handBack{}
	for _, e := range h.entries {
		b := byRun[e.job.Run]
		if b == nil {
			b = &handBack{started: h.started, reason: h.reason}
			byRun[e.job.Run] = b
		}
		b.entries = append(b.entries, e)
	}
	for run, b := range byRun {
		if f := d.feeds[run]; f != nil {
			f.tell(event{returned: b})
		}
	}
}
