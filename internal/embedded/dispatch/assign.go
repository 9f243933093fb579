package dispatch

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// matchLocked assigns queued jobs to workers with enough resources: to the workers with the given slots, or to any
// worker. It is called after an event that may have freed capacity or added jobs; naming the changed slots avoids a
// scan of all slots.
func (d *Dispatcher) matchLocked(now time.Time, only ...*matching.Slot[*entry]) {
	if d.closed {
		return
	}
	for slot, taken := range d.matcher.Match(now, only...) {
		d.assignLocked(d.members.get(slot.ID), taken)
	}
}

// assignLocked books jobs for m and has the assignment recorded. Nothing is sent yet: the feed calls the run's sink and
// then feed.dispatch, which checks whether m can still take the jobs. Consecutive jobs of the same run are recorded
// together, which keeps their order and needs one write for all of them.
func (d *Dispatcher) assignLocked(m *member, taken []*entry) {
	var byRun []*assignment // one assignment for each series of consecutive jobs of the same run
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

// tell notifies each run's sink of those jobs in h that belong to the run; no worker holds them any longer. Runs that
// have been detached in the meantime are skipped. The caller must hold the dispatcher's lock.
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
