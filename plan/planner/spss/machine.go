package spss

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
)

// A machine is part of an unfinished plan. It is held, and paid for, from Delay before start to end.
type machine struct {
	start, end time.Duration // of its first and its last task
	periods    int64         // paid periods
	gaps       []gap         // between tasks, in order
	slots      []ensemble.Turn
}

type gap struct{ begin, end time.Duration }

// gapAt returns the index of the gap that begins at a time, or the index where such a gap would be inserted.
func (m *machine) gapAt(t time.Duration) (at int, found bool) {
	return slices.BinarySearchFunc(m.gaps, t, func(g gap, t time.Duration) int { return cmp.Compare(g.begin, t) })
}

// A fleet is the set of machines of an unfinished plan.
type fleet struct {
	Rules
	machines []*machine
	periods  int64 // total of all machines
	trees    trees

	before  map[int32]machine // changed machines in their state before the current workflow
	planned int               // number of machines before the current workflow
}

func newFleet(r Rules) *fleet { return &fleet{Rules: r, before: map[int32]machine{}} }

// slack returns the paid time that is not needed from the request to the end of the last task.
func (f *fleet) slack(m *machine) time.Duration {
	return time.Duration(m.periods)*f.Terms.Period - (m.end - m.start + f.Delay)
}

// with returns the number of paid periods of a machine that is needed from start to end.
func (f *fleet) with(start, end time.Duration) int64 { return f.Terms.Periods(end - start + f.Delay) }

// put places a task according to an offer.
func (f *fleet) put(o offer, s ensemble.Turn) {
	if o.machine < 0 {
		m := &machine{start: s.Start, end: s.End, periods: f.with(s.Start, s.End), slots: []ensemble.Turn{s}}
		f.machines = append(f.machines, m)
		f.periods += m.periods
		f.enter(int32(len(f.machines)-1), m)
		return
	}
	m := f.machines[o.machine]
	if _, ok := f.before[o.machine]; !ok && int(o.machine) < f.planned {
		was := *m
		was.gaps = slices.Clone(m.gaps)
		f.before[o.machine] = was
	}
	m.slots = append(m.slots, s)
	switch {
	case s.Start >= m.end:
		f.span(o.machine, gap{m.end, s.Start}, m.start, s.End)
	case s.End <= m.start:
		f.span(o.machine, gap{s.End, m.start}, s.Start, m.end)
	default:
		f.fill(o.machine, s)
	}
}

// span extends a machine's time to start and end, and adds a gap.
func (f *fleet) span(id int32, g gap, start, end time.Duration) {
	m := f.machines[id]
	f.leave(id, m)
	m.start, m.end = start, end
	periods := f.with(start, end)
	f.periods += periods - m.periods
	m.periods = periods
	f.enter(id, m)
	if g.begin < g.end {
		f.open(id, m, g)
	}
}

// fill removes a task's time from the gap that contains it.
func (f *fleet) fill(id int32, s ensemble.Turn) {
	m := f.machines[id]
	at, found := m.gapAt(s.Start)
	if !found {
		at--
	}
	g := m.gaps[at]
	f.trees.gaps.remove(g.begin, id)
	m.gaps = slices.Delete(m.gaps, at, at+1)
	for _, rest := range []gap{{g.begin, s.Start}, {s.End, g.end}} {
		if rest.begin < rest.end {
			f.open(id, m, rest)
		}
	}
}

func (f *fleet) open(id int32, m *machine, g gap) {
	at, _ := m.gapAt(g.begin)
	m.gaps = slices.Insert(m.gaps, at, g)
	f.trees.gaps.insert(g.begin, id, g.end, g.end-g.begin)
}

// keep commits a workflow to the plan.
func (f *fleet) keep() {
	clear(f.before)
	f.planned = len(f.machines)
}

// undo removes the current workflow from the plan.
func (f *fleet) undo() {
	for len(f.machines) > f.planned {
		id := int32(len(f.machines) - 1)
		m := f.machines[id]
		f.forget(id, m)
		f.periods -= m.periods
		f.machines = f.machines[:id]
	}
	for id, was := range f.before {
		m := f.machines[id]
		f.forget(id, m)
		f.periods += was.periods - m.periods
		was.slots = m.slots[:len(was.slots)]
		*m = was
		f.enter(id, m)
		for _, g := range m.gaps {
			f.trees.gaps.insert(g.begin, id, g.end, g.end-g.begin)
		}
	}
	clear(f.before)
}

// forget removes a machine from the trees.
func (f *fleet) forget(id int32, m *machine) {
	f.leave(id, m)
	for _, g := range m.gaps {
		f.trees.gaps.remove(g.begin, id)
	}
}
