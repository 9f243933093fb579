package spss

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Rules are the parameters of SPSS.
type Rules struct {
	Budget   cost.Money
	Deadline time.Duration
	Terms    ensemble.Terms
	Alpha    ensemble.Share // weight of a level's tasks relative to its runtime
	Delay    time.Duration  // assumed time from the request for a machine until it is ready
	Reserve  ensemble.Share // share by which planned runtimes exceed the estimates

	Below bool // a plan must cost less than the budget; otherwise it may cost the same
	// Comparisons are strict: a task must end before a machine's first task begins, and after its last task before the
	// deadline.
	Strict bool
	Tie    Tie // the choice among equal offers
}

// A Tie selects between two offers with the same cost and start.
type Tie int

// First and Last are the choices of the published search, in the order in which machines were added and examined.
const (
	Tightest Tie = iota
	First
	Last
)

// Default returns the published weight (Juve 2012, section 6.4), with comparisons that accept exact fits.
func Default(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	return Rules{Budget: budget, Deadline: deadline, Terms: terms, Alpha: 700_000}
}

// Published returns the rules of the authors' program.
func Published(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	r := Default(budget, deadline, terms)
	r.Strict, r.Tie = true, Last
	return r
}

// A builder makes a plan with given rules.
type builder struct {
	Rules
	plan   *fleet
	exempt int // a workflow that is placed whatever it costs; −1: none
}

// Make plans an ensemble (Juve 2012, Algorithms 4 and 5). The plan is within the budget and the deadline if tasks take
// their estimated times and machines are ready after Delay. Each machine must be requested Delay before it starts.
func (r Rules) Make(e ensemble.Ensemble) ensemble.Plan { return r.make(e, -1) }

func (r Rules) make(e ensemble.Ensemble, exempt int) ensemble.Plan {
	b := builder{r, newFleet(r), exempt}
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
		slices.SortStableFunc(m.slots, func(a, b ensemble.Turn) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) // some tasks have no duration
		})
		p.Machines = append(p.Machines, m.slots)
	}
	p.Cost = r.Terms.Times(b.plan.periods)
	return p
}

// workflow places a workflow's tasks on machines, or returns the reason why not all of them fit; in that case the
// caller must call undo.
func (b builder) workflow(k int, w plan.Work) (reason string) {
	w = b.reserved(w)
	deadlines, ok := Deadlines(w, b.Delay, b.Deadline, b.Alpha)
	if !ok {
		return fmt.Sprintf("its critical path takes %s, but the deadline is after %s",
			w.Graph.CriticalPath(w.Runtimes()), max(0, b.Deadline-b.Delay))
	}
	ends := make([]time.Duration, len(w.Tasks))
	for _, t := range inOrder(w.Graph, deadlines) {
		need := need{earliest: b.Delay, takes: w.Tasks[t].Runtime, deadline: deadlines[t]}
		for _, p := range w.Graph.Parents(t) {
			need.earliest = max(need.earliest, ends[p])
		}
		o := b.best(need)
		ends[t] = o.start + need.takes
		b.plan.put(o, ensemble.Turn{Workflow: k, Task: t, Start: o.start, End: ends[t]})
		if k != b.exempt && b.exceeds(b.Terms.Times(b.plan.periods)) {
			return b.dear()
		}
		if ends[t] > b.Deadline {
			return fmt.Sprintf("task %.80s cannot end before the deadline", w.Tasks[t].ID)
		}
	}
	return ""
}

// exceeds reports whether a cost is not within the budget.
func (r Rules) exceeds(costs cost.Money) bool {
	return costs > r.Budget || r.Below && costs == r.Budget
}

// inOrder returns a workflow's tasks by deadline, then in the order of the document, but parents before children.
func inOrder(g *dag.Graph, deadlines []time.Duration) (order []int) {
	missing := make([]int, len(deadlines))
	ready := heap.New(func(a, b int) bool { return cmp.Or(cmp.Compare(deadlines[a], deadlines[b]), a-b) < 0 })
	for t := range missing {
		if missing[t] = len(g.Parents(t)); missing[t] == 0 {
			ready.Push(t)
		}
	}
	for ready.Len() > 0 {
		t := ready.Pop()
		order = append(order, t)
		for _, c := range g.Children(t) {
			if missing[c]--; missing[c] == 0 {
				ready.Push(int(c))
			}
		}
	}
	return order
}

// reserved returns a workflow whose runtimes include the reserve.
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

// best returns the best offer for a task.
func (b builder) best(n need) offer {
	if b.Tie == Tightest {
		return b.byTrees(n)
	}
	return b.oneByOne(n)
}
