package dpds

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/ensemble"
)

// A pool is what a step knows of the machines that count.
type pool struct {
	all        []ensemble.Machine
	completing []ensemble.Machine // whose next period would begin before the next step could end them
	idle       []ensemble.Machine // of those that are ready
	busy       int                // slots of those that are ready and have a task
	slots      int                // of those that are ready
	spent      cost.Money
}

// Step decides about the machines (Juve 2012, Algorithm 2): the first Machines at the beginning, then every Interval. A
// machine is ended only shortly before another period of it would begin, so that no money is thrown away.
func (r Rules) Step(v ensemble.View) ensemble.Orders {
	if v.Now == 0 {
		return ensemble.Orders{Start: r.Machines, Next: firstLook}
	}
	orders := r.step(v)
	orders.Next = v.Now + r.Interval
	return orders
}

// firstLook is when machines are looked at first: when the first tasks have begun.
const firstLook = time.Millisecond

func (r Rules) step(v ensemble.View) ensemble.Orders {
	p := r.pool(v)
	left := r.Budget - p.spent
	late := v.Now > r.Deadline
	switch {
	case v.Over && r.Fixes.Finish:
		return ensemble.Orders{Stop: ids(p.all)}
	case late && r.Once:
		return ensemble.Orders{Stop: ids(p.all)}
	case late:
		return ensemble.Orders{Stop: ids(p.completing)}
	case left < r.Terms.Times(int64(len(p.completing))):
		n := int64(len(p.all)) - r.Terms.Affords(left)
		return ensemble.Orders{Stop: ids(first(p.completing, int(max(0, n))))}
	case r.Once && len(p.all) < r.Machines && (p.slots == 0 || r.Low.Compare(p.busy, p.slots) <= 0): // some have ended
		return ensemble.Orders{Start: int(min(int64(r.Machines-len(p.all)), r.Terms.Affords(left)))}
	case r.Fixed, p.slots == 0, left <= r.Terms.Times(int64(len(p.all))):
	case r.High.Compare(p.busy, p.slots) < 0: // u > u_h
		return ensemble.Orders{Start: r.more(len(p.all), left)}
	case r.Low.Compare(p.busy, p.slots) > 0: // u < u_l
		return ensemble.Orders{Stop: r.fewer(p)}
	}
	return ensemble.Orders{}
}

// more is how many machines are asked for, one or none, where there are so many.
func (r Rules) more(machines int, left cost.Money) int {
	need := int64(1)
	if r.Fixes.Afford {
		need += int64(machines)
	}
	if r.Scaling.Of(r.Machines) <= machines || left < r.Terms.Times(need) {
		return 0
	}
	return 1
}

// fewer are half of the idle machines, as far as their periods end. The published rule takes any half, and of it those
// whose periods end.
func (r Rules) fewer(p pool) []int {
	n := (len(p.idle) + 1) / 2
	if r.Fixes.RoundDown && len(p.all) > 1 {
		n = len(p.idle) / 2
	}
	goes := func(m ensemble.Machine) bool {
		return slices.ContainsFunc(p.completing, func(c ensemble.Machine) bool { return c.ID == m.ID })
	}
	if !r.Fixes.Idle {
		return ids(only(first(p.idle, n), goes))
	}
	return ids(first(only(p.idle, goes), n))
}

// pool sorts the machines of a view.
func (r Rules) pool(v ensemble.View) (p pool) {
	for _, m := range v.Machines {
		if !m.Ready && !r.Fixes.Booting {
			continue
		}
		p.all = append(p.all, m)
		if m.Ready {
			p.busy, p.slots = p.busy+m.Busy, p.slots+m.Slots
			if m.Busy == 0 {
				p.idle = append(p.idle, m)
			}
		}
		if m.Held && !r.Once && v.Paid(m, r.Terms) < r.Interval+r.Leaving {
			p.completing = append(p.completing, m)
		}
	}
	if r.Fixes.Idle {
		p.completing = append(only(p.completing, free), only(p.completing, occupied)...)
	}
	p.spent = v.Spent(p.all, r.Terms)
	return p
}

func free(m ensemble.Machine) bool     { return m.Busy == 0 }
func occupied(m ensemble.Machine) bool { return m.Busy > 0 }

// only returns the machines of which something holds.
func only(machines []ensemble.Machine, holds func(ensemble.Machine) bool) (some []ensemble.Machine) {
	for _, m := range machines {
		if holds(m) {
			some = append(some, m)
		}
	}
	return some
}

func first(machines []ensemble.Machine, n int) []ensemble.Machine {
	return machines[:min(n, len(machines))]
}

func ids(machines []ensemble.Machine) (all []int) {
	for _, m := range machines {
		all = append(all, m.ID)
	}
	return all
}
