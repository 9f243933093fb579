package spss

import "time"

// A need is the time that a task needs, between earliest and its deadline.
type need struct{ earliest, takes, deadline time.Duration }

// An offer is a place for a task.
type offer struct {
	machine int32 // −1: a new machine
	start   time.Duration
	periods int64 // additional cost
}

// better reports whether an offer is preferred to another, by lower cost, then by use of an existing machine, then by
// earlier start.
func (o offer) better(than offer, tie Tie) bool {
	switch {
	case o.periods != than.periods:
		return o.periods < than.periods
	case (o.machine < 0) != (than.machine < 0):
		return o.machine >= 0
	case o.start != than.start:
		return o.start < than.start
	}
	return tie == Last
}

// fresh returns the offer of a new machine.
func (b builder) fresh(n need) offer {
	return offer{-1, n.earliest, b.plan.with(n.earliest, n.earliest+n.takes)}
}

// oneByOne returns the best offer of all machines by the search of the authors' program.
func (b builder) oneByOne(n need) offer {
	best := b.fresh(n)
	for id, m := range b.plan.machines {
		for _, o := range b.offers(m, n) {
			o.machine = int32(id)
			if o.start+n.takes <= n.deadline && o.better(best, b.Tie) {
				best = o
			}
		}
	}
	return best
}

// offers returns the places for a task on a machine, ignoring its deadline: before the first task, without a gap, whole
// periods earlier, or at the beginning of the paid time; in the first gap that is large enough; after the last task.
func (b builder) offers(m *machine, n need) (all []offer) {
	if fits := n.earliest + n.takes; fits < m.start || fits == m.start && !b.Strict {
		for _, start := range []time.Duration{m.start - n.takes, max(n.earliest, m.start-b.plan.whole(n)),
			max(n.earliest, m.start-b.plan.slack(m))} {
			if start >= n.earliest && start+n.takes <= m.start {
				all = append(all, offer{0, start, b.plan.with(start, m.end) - m.periods})
			}
		}
	}
	for _, g := range m.gaps {
		if start := max(g.begin, n.earliest); start+n.takes <= g.end {
			all = append(all, offer{0, start, 0})
			break
		}
	}
	if end := m.end + n.takes; !b.Strict || end < n.deadline {
		start := max(n.earliest, m.end)
		all = append(all, offer{0, start, b.plan.with(m.start, start+n.takes) - m.periods})
	}
	return all
}

// whole returns a task's time, rounded up to whole periods.
func (f *fleet) whole(n need) time.Duration {
	return (n.takes + f.Terms.Period - 1) / f.Terms.Period * f.Terms.Period
}
