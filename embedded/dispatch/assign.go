package dispatch

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/matching"
)

// matchLocked gives queued jobs to workers that can take them: to those with these slots, or to all.
func (d *Dispatcher) matchLocked(now time.Time, only ...*matching.Slot[*entry]) {
	if d.closed {
		return
	}
	for slot, taken := range d.matcher.Match(now, only...) {
		d.assignLocked(d.member(slot.ID), taken)
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

// dispatch sends jobs whose intent is recorded. If their worker cannot take them any more they are
// queued again.
func (d *Dispatcher) dispatch(a *assignment) {
	jobs := make([]*execution.Job, len(a.entries))
	for i, e := range a.entries {
		jobs[i] = &e.job
	}
	frames, tooLarge := wire.EncodeAssign(jobs)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.member(a.to.slot.ID) != a.to || a.to.conn == nil || a.to.about.Draining {
		d.unassignLocked(a)
		return
	}
	for _, e := range a.entries {
		if a.to.held[e.job.Key()] == e {
			e.sent = true
		} else { // its run was detached just now: the cancel follows
			e.cancelled = true
			a.to.strangers[e.job.Key()] = e
		}
	}
	d.stats.Assigned += int64(len(a.entries) - len(tooLarge))
	for _, frame := range frames {
		a.to.conn.SendFrame(frame)
	}
	for _, j := range tooLarge {
		d.failLocked(a.to, j.Key())
	}
	a.to.sendCancels()
}

// unassign queues jobs again whose intent could not be recorded.
func (d *Dispatcher) unassign(a *assignment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unassignLocked(a)
}

func (d *Dispatcher) unassignLocked(a *assignment) {
	now := time.Now()
	cancelled := &handBack{reason: "cancelled"}
	for _, e := range a.entries {
		if a.to.held[e.job.Key()] != e {
			continue // its run was detached
		}
		delete(a.to.held, e.job.Key())
		a.to.slot.Release(&e.match, now)
		if e.cancelled {
			cancelled.entries = append(cancelled.entries, e)
		} else {
			e.renew()
			d.matcher.Restore(&e.match)
		}
	}
	d.returnLocked(cancelled)
	d.matchLocked(now)
}

// failLocked ends a job that no frame can hold.
func (d *Dispatcher) failLocked(m *member, key execution.Key) {
	e := m.held[key]
	if e == nil || d.feeds[key.Run] == nil {
		return
	}
	delete(m.held, key)
	now := time.Now()
	m.slot.Release(&e.match, now)
	b := batch{}
	for _, t := range e.job.Tasks {
		e.mark(t.Index, received)
		b.entries = append(b.entries, e)
		b.reports = append(b.reports, wire.Report{Result: execution.Result{
			Key: key, Index: t.Index, Attempt: t.Attempt, Status: execution.Failed, Exit: -1, Worker: m.slot.ID,
			Reason:    fmt.Sprintf("its job is larger than the %d MiB that can be sent to a worker", wire.MaxFrame>>20),
			StartedAt: now.UTC(), EndedAt: now.UTC(),
		}})
	}
	d.feeds[key.Run].tell(event{finished: []batch{b}})
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
