package dispatch

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// dispatch sends jobs whose assignment has been recorded. In the meantime the worker may have left or begun to drain:
// then the jobs are queued again, and the next record supersedes this one. If the run was detached, its jobs are sent
// nevertheless, because the worker's slot counts them, and cancelled immediately afterwards.
func (f *feed) dispatch(a *assignment) {
	d := f.d
	jobs := make([]*execution.Job, len(a.entries))
	for i, e := range a.entries {
		jobs[i] = &e.job
	}
	frames, tooLarge := wire.EncodeAssign(jobs)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.members.get(a.to.slot.ID) != a.to || a.to.conn == nil || a.to.about.Draining {
		f.unassignLocked(a)
		return
	}
	for _, e := range a.entries {
		if a.to.held[e.job.Key()] == e {
			e.sent = true
		} else { // its run was just detached: the cancel follows
			e.cancelled = true
			a.to.strangers[e.job.Key()] = e
		}
	}
	for _, frame := range frames {
		a.to.conn.SendFrame(frame)
	}
	for _, j := range tooLarge {
		f.failLocked(a.to, j.Key())
	}
	a.to.sendCancels()
}

// unassign returns jobs to the queue if their assignment could not be recorded.
func (f *feed) unassign(a *assignment) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.unassignLocked(a)
}

// unassignLocked takes back jobs that were booked for a worker but not sent. They return to their old places in the
// queue; jobs that were cancelled in the meantime are returned to their sink.
func (f *feed) unassignLocked(a *assignment) {
	d := f.d
	now := time.Now()
	cancelled := &handBack{reason: "cancelled"}
	for _, e := range a.entries {
		if a.to.held[e.job.Key()] != e {
			continue // its run was detached
		}
		a.to.drop(e.job.Key())
		a.to.slot.Release(&e.match, now)
		if e.cancelled {
			cancelled.entries = append(cancelled.entries, e)
		} else {
			e.renew()
			d.matcher.Restore(&e.match)
		}
	}
	cancelled.tell(d.feeds)
	d.matchLocked(now)
}

// failLocked ends a job that is too large for a frame. Such a job can never be sent, so its tasks fail with that
// reason, as if a worker had reported the failure.
func (f *feed) failLocked(m *member, key execution.Key) {
	e := m.held[key]
	if e == nil || f.d.feeds[key.Run] != f {
		return
	}
	m.drop(key)
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
	f.tell(event{finished: []batch{b}})
}

// acknowledge forgets jobs whose results have been recorded, and lets their workers delete the results. Until then a
// result may arrive any number of times.
func (f *feed) acknowledge(batches []batch) {
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range batches {
		numbers := make([]int64, len(b.reports))
		for i := range b.reports {
			r, e := &b.reports[i], b.entries[i]
			numbers[i] = r.N
			e.mark(r.Index, recorded)
			if b.from != nil && e.complete(recorded) && b.from.held[r.Key] == e {
				delete(b.from.held, r.Key)
				b.from.about.DoneTasks += len(e.job.Tasks)
			}
		}
		if b.from != nil {
			b.from.send(&wire.Message{Type: wire.TypeAck, Numbers: numbers})
		}
	}
}
