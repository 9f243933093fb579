package spss

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// A Guard carries out a plan within the budget, even if machines are late and runtimes differ: it is the online guard
// that is missing when a plan is simply executed. Machines are requested at their planned times
// and run their own tasks in the planned order; late tasks run on any free machine. A machine at the end of its paid
// time is kept if it runs a task or a task is planned on it later, and if the money suffices; otherwise it ends.
type Guard struct {
	Rules
	Interval time.Duration // maximum time between two decisions
	// Time that a machine takes to end; whether the machine stays is decided this long before its next period.
	Leaving time.Duration

	plan     ensemble.Plan
	machines []ensemble.Planned // in the order of their requests
	tasks    [][][2]int         // per machine: pairs of workflow and task
	own      [][]own            // :: workflow → task
}

type own struct {
	machine int
	start   time.Duration
}

// NewGuard returns a guard of a plan for an ensemble that was made with the given rules.
func NewGuard(r Rules, e ensemble.Ensemble, p ensemble.Plan) *Guard {
	g := &Guard{Rules: r, Interval: 30 * time.Second, plan: p, machines: slices.Clone(p.Machines)}
	g.own = make([][]own, len(e))
	slices.SortStableFunc(g.machines, func(a, b ensemble.Planned) int { return cmp.Compare(a.Start(), b.Start()) })
	for k, w := range e {
		g.own[k] = make([]own, len(w.Tasks))
	}
	for id, m := range g.machines {
		tasks := make([][2]int, len(m))
		for i, s := range m {
			g.own[s.Workflow][s.Task] = own{id, s.Start}
			tasks[i] = [2]int{s.Workflow, s.Task}
		}
		g.tasks = append(g.tasks, tasks)
	}
	return g
}

// Own returns the planned machine and start of a task.
func (g *Guard) Own(workflow, task int) (machine int, start time.Duration) {
	o := g.own[workflow][task]
	return o.machine, o.start
}

// Tasks returns the planned tasks of a machine in order.
func (g *Guard) Tasks(machine int) [][2]int { return g.tasks[machine] }

// Place returns the key of a ready task in the queue: its planned start.
func (g *Guard) Place(workflow, task int) int64 { return int64(g.own[workflow][task].start) }

// Admit begins the workflows of the plan.
func (g *Guard) Admit(_ ensemble.View, c ensemble.Claim) ensemble.Verdict {
	if !g.plan.Admitted[c.Workflow] {
		return ensemble.Verdict{Never: true, Reason: g.plan.Reasons[c.Workflow]}
	}
	return ensemble.Verdict{Begin: true}
}

// Step decides about the machines.
func (g *Guard) Step(v ensemble.View) (orders ensemble.Orders) {
	if v.Over {
		for _, m := range v.Machines {
			orders.Stop = append(orders.Stop, m.ID)
		}
		return orders
	}
	interval, ahead := g.ahead(v)
	orders.Next = v.Now + interval
	due := v.Asked
	for due < len(g.machines) && g.asked(due) <= v.Now {
		due++
	}
	if due < len(g.machines) {
		orders.Next = min(orders.Next, g.asked(due))
	}
	for _, m := range v.Machines {
		if last := v.Now + v.Paid(m, g.Terms) - g.Leaving; m.Held && last > v.Now {
			orders.Next = min(orders.Next, last)
		}
	}
	left := g.left(v)
	for _, m := range g.completing(v) {
		boundary, charge := v.Now+v.Paid(m, g.Terms), v.Charge(m, g.Terms, ahead)-v.Charge(m, g.Terms, g.late())
		keep := m.Busy > 0 || m.ID < len(g.machines) && g.machines[m.ID].End() > boundary
		if keep && boundary < g.Deadline && left >= charge {
			left -= charge
			if again := boundary + g.Terms.Period - g.Leaving; g.Terms.Period > g.Leaving {
				orders.Next = min(orders.Next, again)
			}
			continue
		}
		orders.Stop = append(orders.Stop, m.ID)
	}
	if v.Now < g.Deadline {
		orders.Start = int(min(int64(due-v.Asked), g.Terms.Affords(left)/g.Terms.Periods(ahead)))
	}
	waits := func(m ensemble.Instance) bool { return !m.Held }
	if first := g.Terms.Period - g.Leaving; first > 0 && (orders.Start > 0 || slices.ContainsFunc(v.Machines, waits)) {
		orders.Next = min(orders.Next, v.Now+first) // its first period may end by then
	}
	return orders
}

// ahead returns the time until the next decision, and the time for which machines that are not ended now are charged.
// The latter is at most one period if each machine can be reconsidered before its period ends. If a machine takes a
// period or longer to end, it is the time until the next decision takes effect, and that decision is made earlier if
// the money would not last.
func (g *Guard) ahead(v ensemble.View) (interval, ahead time.Duration) {
	next := g.Interval
	if g.Terms.Period > g.Leaving {
		return next, min(next, g.Terms.Period)
	}
	left := g.left(v)
	for next/2 >= max(g.Terms.Period, time.Second) {
		var dues cost.Money
		for _, m := range v.Machines {
			dues = dues.Plus(v.Charge(m, g.Terms, next+g.Leaving) - v.Charge(m, g.Terms, g.late()))
		}
		if dues <= left {
			break
		}
		next /= 2
	}
	return next, next + g.Leaving
}

// late returns how long a machine is held regardless of the decision, or 0 if it can end before its period does,
// because that costs nothing.
func (g *Guard) late() time.Duration {
	if g.Terms.Period > g.Leaving {
		return 0
	}
	return g.Leaving
}

// left returns the money that remains after all expenses that do not depend on the decision.
func (g *Guard) left(v ensemble.View) cost.Money {
	left := g.Budget - v.Spent(v.Machines, g.Terms)
	for _, m := range v.Machines {
		left -= v.Charge(m, g.Terms, g.late())
	}
	return left
}

// completing returns the machines whose paid time ends now; machines without a task come first.
func (g *Guard) completing(v ensemble.View) (some []ensemble.Instance) {
	for _, m := range v.Machines {
		if m.Held && v.Paid(m, g.Terms) <= g.Leaving {
			some = append(some, m)
		}
	}
	slices.SortStableFunc(some, func(a, b ensemble.Instance) int { return cmp.Compare(a.Busy, b.Busy) })
	return some
}

// asked returns the time at which to request a machine.
func (g *Guard) asked(machine int) time.Duration { return max(0, g.machines[machine].Start()-g.Delay) }
