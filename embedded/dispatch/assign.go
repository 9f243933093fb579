package dispatch

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// matchLocked gives queued jobs to workers that can take them: to those with these slots, or to all. It is called after
// whatever may have made room or brought jobs; to name the slots that have changed saves a look at all of them.
func (d *Dispatcher) matchLocked(now time.Time, only ...*matching.Slot[*entry]) {
	if d.closed {
		return
	}
	for slot, taken := range d.matcher.Match(now, only...) {
		d.assignLocked(d.members.get(slot.ID), taken)
	}
}

// assignLocked books jobs for m and has their intent recorded. Nothing is sent yet: the feed calls the run's sink and
// then feed.dispatch, which finds out whether m can still take the jobs. Jobs in a row that have the same run are
// recorded together, which keeps their order and costs one write for all of them.
func (d *Dispatcher) assignLocked(m *member, taken []*entry) {
	var byRun []*assignment // of jobs in a row that have the same run
	for _, e := range taken {
		m.take(e)
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

// tell tells the sinks of jobs that no worker has any more, each sink of its own run's. A run that has been
// detached meanwhile is not told. The dispatcher's lock must be held.
func (h *handBack) tell(feeds map[corral.RunID]*feed) {
	byRun := map[corral.RunID]*handBack{}
	for _, e := range h.entries {
		b := byRun[e.job.Run]
		if b == nil {
			b = &handBack{started: h.started, until: h.until, reason: h.reason}
			byRun[e.job.Run] = b
		}
		b.entries = append(b.entries, e)
	}
	for run, b := range byRun {
		if f := feeds[run]; f != nil {
			f.tell(event{returned: b})
		}
	}
}
