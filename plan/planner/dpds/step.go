package dpds

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// A pool classifies the machines that count.
type pool struct {
	all        []ensemble.Instance
	completing []ensemble.Instance // machines whose next period would begin before the next step could end them
	idle       []ensemble.Instance // ready machines without a task
	dues       cost.Money          // additional cost of completing machines until the next orders take effect
	due        cost.Money          // maximum additional cost of one completing machine
	busy       int                 // busy slots of ready machines
	slots      int                 // slots of ready machines
	spent      cost.Money          // money that is spent regardless of the decision
}

// Step decides about the machines (Juve 2012, Algorithm 2): it starts the initial machines, then decides at every
// Interval. A machine is ended only shortly before its next period would begin, so that no paid time is wasted. If
// periods are shorter than the interval, which the thesis does not consider, a machine costs several periods until the
// next step; the next step is earlier if the money would not last.
func (r Rules) Step(v ensemble.View) ensemble.Orders {
	if v.Now == 0 {
		n := min(int64(r.Machines), r.affords(r.Budget))
		return ensemble.Orders{Start: int(n), Next: firstLook}
	}
	for r.Interval/2 >= max(r.Terms.Period, time.Second) && r.short(v) {
		r.Interval /= 2
	}
	orders := r.step(v)
	orders.Next = v.Now + r.Interval
	return orders
}

// ahead returns the minimum time that a machine is held if it is not ended now.
func (r Rules) ahead() time.Duration { return r.Interval + r.Leaving }

// late returns the time that a machine is held regardless of the decision.
func (r Rules) late() time.Duration {
	if r.Once || !r.Fixes.Leaving {
		return 0
	}
	return r.Leaving
}

// costs returns the cost of new machines until the next decision takes effect.
func (r Rules) costs(machines int) cost.Money {
	if r.Once {
		return r.Terms.Times(int64(machines))
	}
	return r.Terms.Times(int64(machines) * r.Terms.Periods(r.ahead()))
}

// affords returns the number of new machines that are affordable.
func (r Rules) affords(money cost.Money) int64 {
	if r.Terms.Price <= 0 {
		return math.MaxInt64
	}
	return int64(max(0, money) / r.costs(1))
}

// short reports whether the money is insufficient to keep the present machines until the next step.
func (r Rules) short(v ensemble.View) bool {
	p := r.pool(v)
	return r.Budget-p.spent < p.dues
}

// firstLook is the time of the second decision, just after the first tasks have begun.
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
	case left < p.dues:
		n := int64(len(p.all)) - int64(max(0, left)/max(1, p.due))
		return ensemble.Orders{Stop: ids(first(p.completing, int(max(0, n))))}
	case (r.Once || r.Ends) && len(p.all) < r.Machines && r.lacking(p): // some have ended
		return ensemble.Orders{Start: int(min(int64(r.Machines-len(p.all)), r.affords(left-p.dues)))}
	case r.Fixed, p.slots == 0, left <= r.costs(len(p.all)):
	case r.High.Compare(p.busy, p.slots) < 0: // u > u_h
		return ensemble.Orders{Start: r.more(len(p.all), left)}
	case r.Low.Compare(p.busy, p.slots) > 0: // u < u_l
		return ensemble.Orders{Stop: r.fewer(p)}
	}
	return ensemble.Orders{}
}

// lacking reports whether ended machines have to be replaced: no ready machine is left, or the remaining ones are busy.
// If machines are billed once, no machine was ended by a decision; otherwise some may have been ended for lack of work.
func (r Rules) lacking(p pool) bool {
	if r.Once {
		return p.slots == 0 || r.Low.Compare(p.busy, p.slots) <= 0
	}
	return len(p.all) == 0 || r.High.Compare(p.busy, p.slots) < 0 && p.slots > 0
}

// more returns the number of machines to add, one or none.
func (r Rules) more(machines int, left cost.Money) int {
	need := int64(1)
	if r.Fixes.Afford {
		need += int64(machines)
	}
	if r.Scaling.Of(r.Machines) <= machines || r.affords(left) < need {
		return 0
	}
	return 1
}

// fewer returns the machines to end: at most half as many as are idle, all of them idle machines whose periods end. The
// published rule selects half of all idle machines, and ends those selected machines whose periods end.
func (r Rules) fewer(p pool) []int {
	n := (len(p.idle) + 1) / 2
	if r.Fixes.RoundDown && len(p.all) > 1 {
		n = len(p.idle) / 2
	}
	goes := func(m ensemble.Instance) bool {
		return slices.ContainsFunc(p.completing, func(c ensemble.Instance) bool { return c.ID == m.ID })
	}
	if !r.Fixes.Idle {
		return ids(only(first(p.idle, n), goes))
	}
	return ids(first(only(p.idle, goes), n))
}

// pool classifies the machines of a view.
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
		spent := v.Charge(m, r.Terms, r.late())
		due := v.Charge(m, r.Terms, r.ahead()) - spent
		p.spent = p.spent.Plus(spent)
		if !r.Once && due > 0 {
			p.completing = append(p.completing, m)
			p.dues, p.due = p.dues.Plus(due), max(p.due, due)
		}
	}
	if r.Fixes.Idle {
		p.completing = append(only(p.completing, free), only(p.completing, occupied)...)
	}
	p.spent = p.spent.Plus(v.Spent(p.all, r.Terms))
	return p
}

func free(m ensemble.Instance) bool     { return m.Busy == 0 }
func occupied(m ensemble.Instance) bool { return m.Busy > 0 }

// only returns the machines that satisfy a condition.
func only(machines []ensemble.Instance, holds func(ensemble.Instance) bool) (some []ensemble.Instance) {
	for _, m := range machines {
		if holds(m) {
			some = append(some, m)
		}
	}
	return some
}

func first(machines []ensemble.Instance, n int) []ensemble.Instance {
	return machines[:min(n, len(machines))]
}

func ids(machines []ensemble.Instance) (all []int) {
	for _, m := range machines {
		all = append(all, m.ID)
	}
	return all
}
