package queue

import (
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/slot"
)

// Clone returns an independent copy. The background is shared.
func (q *Queue) Clone() *Queue { return q.copied(func(*entry) {}) }

// copied returns a copy of the queue, and applies change to each job of the copy.
func (q *Queue) copied(change func(e *entry)) *Queue {
	c := *q
	c.plan.free, c.plan.held, c.open = q.plan.free.Clone(), maps.Clone(q.plan.held), map[int]*entry{}
	renewed := func(e *entry) *entry {
		f := *e
		change(&f)
		if f.Runtime == Open && !f.over {
			c.open[f.ID] = &f
		}
		return &f
	}
	c.waiting = make([]*entry, len(q.waiting))
	for i, e := range q.waiting {
		c.waiting[i] = renewed(e)
	}
	c.ends = heap.New(ending.before)
	for _, x := range q.ends.Values() {
		x.entry = renewed(x.entry)
		x.at = max(q.plan.now, x.entry.end())
		c.ends.Push(x)
	}
	return &c
}

// Condensed returns a copy of a queue with conservative backfilling and without future jobs in which no jobs are
// listed: they hold their processors at their planned times, in the profile alone. Jobs that are submitted to the copy
// start as in the original as long as all of its jobs run for their requested times and no job leaves before its own. A
// copy of the copy takes little time, however many jobs there were.
func (q *Queue) Condensed() *Queue {
	return within(q.plan.Machine, q.plan.now, q.plan.free)
}

// Within returns a queue with conservative backfilling whose jobs share a profile, from its instant 0 on.
func Within(free *slot.Profile) *Queue {
	return within(Machine{Processors: free.Processors(), Policy: Conservative}, 0, free)
}

func within(m Machine, now time.Duration, free *slot.Profile) *Queue {
	q := New(m, nil)
	q.plan.now, q.plan.free = now, free.Clone()
	return q
}

// Planned returns the start of each waiting job, in order of arrival, on the assumption that no others arrive and all
// run for their requested times. With conservative backfilling no job starts later than planned; with the other
// policies the starts are a forecast (for EASY: Singh, 2008, ch. 5, where prices of reservations are based on it).
func Planned(q *Queue) []Held {
	c := q.copied(func(e *entry) { e.Runtime = e.Requested })
	c.background, c.arrived = nil, 0
	waiting := slices.Clone(c.waiting)
	c.Advance(Open, nil)
	all := make([]Held, len(waiting))
	for i, e := range waiting {
		all[i] = Held{e.Job, e.start, e.until()}
		all[i].Runtime = q.waiting[i].Runtime
		if !e.running {
			all[i].Start, all[i].End = -1, -1 // the job can never start because of a reservation
		}
	}
	return all
}

// Unplanned returns the profile of processors that neither running jobs nor reservations nor waiting jobs at their
// planned starts occupy: a job that fits into this profile delays no other, as long as planned starts are kept.
func Unplanned(q *Queue) *slot.Profile {
	if q.plan.Policy == Conservative {
		return q.Free() // each waiting job has a reservation
	}
	var planned []slot.Change
	for _, h := range Planned(q) {
		if h.Start >= 0 {
			planned = append(planned, slot.Change{From: h.Start, To: h.End, Free: -h.Processors})
		}
	}
	return q.plan.free.With(planned)
}
