package spss

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Rules are what SPSS is run with.
type Rules struct {
	Budget   cost.Money
	Deadline time.Duration
	Terms    ensemble.Terms
	Alpha    ensemble.Share // weight of a level's tasks against its runtime
	Delay    time.Duration  // from the request for a machine until it is ready, as it is reckoned with
	Reserve  ensemble.Share // by how much longer than estimated tasks are planned

	Below  bool // a plan has to cost less than the budget; else it may cost as much
	Strict bool // a task has to end before the first task of a machine begins, and before its deadline behind the last
	Tie    Tie  // which of equal offers is taken
}

// A Tie says which of two offers is taken that cost the same and begin at the same time.
type Tie int

// Ties. First and Last are of the published search, in the order in which machines were added and looked at.
const (
	Tightest Tie = iota
	First
	Last
)

// Default returns the published weight (Juve 2012, section 6.4) with all comparisons such that what fits exactly fits.
func Default(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	return Rules{Budget: budget, Deadline: deadline, Terms: terms, Alpha: 700_000}
}

// Published returns the rules of the authors' program.
func Published(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	r := Default(budget, deadline, terms)
	r.Strict, r.Tie = true, Last
	return r
}

// A builder makes a plan by some rules.
type builder struct {
	Rules
	plan *fleet
}

// Make plans an ensemble (Juve 2012, Algorithms 4 and 5). The plan keeps the budget and the deadline if tasks take what
// they are estimated to, and machines are ready after Delay; each machine is to be asked for as much before it begins.
func (r Rules) Make(e ensemble.Ensemble) ensemble.Plan {
	b := builder{r, newFleet(r)}
	p := ensemble.Plan{Admitted: make([]bool, len(e)), Reasons: make([]string, len(e))}
	for k, w := range e {
		if reason := b.workflow(k, w); reason != "" {
			p.Reasons[k] = reason
			b.plan.undo()
			continue
		}
		p.Admitted[k] = true
		b.plan.keep()
	}
	for _, m := range b.plan.machines {
		slices.SortStableFunc(m.slots, func(a, b ensemble.Slot) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) // some tasks take no time
		})
		p.Machines = append(p.Machines, m.slots)
	}
	p.Cost = r.Terms.Times(b.plan.periods)
	return p
}

// workflow puts a workflow's tasks on machines, or says why not all of them; then those that it put are to be undone.
func (b builder) workflow(k int, w plan.Work) (reason string) {
	w = b.reserved(w)
	deadlines, ok := Deadlines(w, b.Delay, b.Deadline, b.Alpha)
	if !ok {
		return fmt.Sprintf("its critical path takes %s, and the deadline is after %s",
			w.Graph.CriticalPath(w.Runtimes()), max(0, b.Deadline-b.Delay))
	}
	order := slices.Clone(w.Graph.Order())
	slices.SortStableFunc(order, func(s, t int) int { return cmp.Compare(deadlines[s], deadlines[t]) })
	ends := make([]time.Duration, len(w.Tasks))
	for _, t := range order {
		need := need{earliest: b.Delay, takes: w.Tasks[t].Runtime, deadline: deadlines[t]}
		for _, p := range w.Graph.Parents(t) {
			need.earliest = max(need.earliest, ends[p])
		}
		o := b.best(need)
		ends[t] = o.start + need.takes
		b.plan.put(o, ensemble.Slot{Workflow: k, Task: t, Start: o.start, End: ends[t]})
		if costs := b.Terms.Times(b.plan.periods); costs > b.Budget || b.Below && costs == b.Budget {
			return fmt.Sprintf("with it the plan costs %s or more, of a budget of %s",
				b.Terms.Amount(costs).Brief(), b.Terms.Amount(b.Budget).Brief())
		}
		if ends[t] > b.Deadline {
			return fmt.Sprintf("task %.80s cannot end before the deadline", w.Tasks[t].ID)
		}
	}
	return ""
}

// reserved returns a workflow with the runtimes that it is planned with.
func (b builder) reserved(w plan.Work) plan.Work {
	if b.Reserve == 0 {
		return w
	}
	w.Tasks = slices.Clone(w.Tasks)
	for i := range w.Tasks {
		t := &w.Tasks[i].Runtime
		*t += time.Duration(b.Reserve.Of(int(t.Milliseconds()))) * time.Millisecond
	}
	return w
}

// best returns where a task goes.
func (b builder) best(n need) offer {
	if b.Tie == Tightest {
		return b.byTrees(n)
	}
	return b.oneByOne(n)
}
