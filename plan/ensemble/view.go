package ensemble

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// A View is what a decision about machines rests on, in a simulation as in a real run.
type View struct {
	Now      time.Duration
	Ended    cost.Money // what machines have cost that are no more
	Machines []Machine  // that were asked for and have not ended, in the order in which they were
	Asked    int        // machines that were asked for since the beginning
	Over     bool       // no task is left that may still run
}

// A Machine is one of a view.
type Machine struct {
	ID    int
	From  time.Duration // when its billing began: at the request, or for a pilot when its queue let it go
	Held  bool          // it is billed; a pilot that waits in its queue is not, and From says nothing
	Ready bool          // it runs tasks; else it waits or boots
	Slots int           // tasks that it runs at a time
	Busy  int           // tasks that it runs now
}

// Orders are what is to be done about machines.
type Orders struct {
	Start int           // so many more are asked for
	Stop  []int         // these end at once; the tasks that they have are to run again
	Next  time.Duration // when to decide again, after now
}

// Cost returns what a machine has cost so far, for the periods that it has begun. One that waits in its queue counts as
// its first, which is billed when the queue lets it go.
func (v View) Cost(m Machine, t Terms) cost.Money { return t.Cost(v.held(m)) }

// Paid returns for how long a machine is paid from now on.
func (v View) Paid(m Machine, t Terms) time.Duration {
	held := v.held(m)
	return time.Duration(t.Periods(held))*t.Period - held
}

// Charge returns what a machine costs more if it is held for so much longer.
func (v View) Charge(m Machine, t Terms, longer time.Duration) cost.Money {
	held := v.held(m)
	return t.Times(t.Periods(held+longer) - t.Periods(held))
}

func (v View) held(m Machine) time.Duration {
	if !m.Held {
		return 0
	}
	return v.Now - m.From
}

// Spent returns what some machines have cost so far, and all that are no more.
func (v View) Spent(machines []Machine, t Terms) cost.Money {
	sum := v.Ended
	for _, m := range machines {
		sum = sum.Plus(v.Cost(m, t))
	}
	return sum
}

// A Claim is what a workflow is expected to take, and what those take that were begun.
type Claim struct {
	Workflow int           // its priority, 0 is the highest
	Runtime  time.Duration // of all its tasks, one after the other
	Path     time.Duration // its critical path
	Begun    time.Duration // that those tasks take which have not ended, running ones in full, of workflows begun
}

// Late says why a workflow cannot be completed in the time that is left, or nothing: its critical path is longer (trap
// T27).
func (c Claim) Late(left time.Duration) string {
	if left = max(0, left); c.Path <= left {
		return ""
	}
	return fmt.Sprintf("its critical path takes %s, and the deadline is in %s", c.Path, left)
}

// Dear says why a workflow cannot be paid, or nothing. The money is what can be spent on running tasks from now on;
// what was begun takes its part of it. The rest has to be more than what the workflow's tasks cost (Juve 2012,
// Algorithm 3).
func (c Claim) Dear(t Terms, money cost.Money) string {
	price, rest := t.Of(c.Runtime), money-t.Of(c.Begun)
	if price < rest {
		return ""
	}
	return fmt.Sprintf("its tasks cost %s at least, and %s is left for them",
		t.Amount(price).Brief(), t.Amount(max(0, rest)).Brief())
}

// A Policy decides about machines and workflows.
type Policy interface {
	Step(View) Orders               // what is to be done about machines; first at the beginning
	Admit(View, Claim) Verdict      // whether a workflow is begun whose first task is next
	Place(workflow, task int) int64 // of a ready task in the queue; the smallest is next
}

// A Verdict says whether a workflow is begun.
type Verdict struct {
	Begin  bool
	Never  bool   // nor will it be later; else it may be asked about again when another workflow has ended
	Reason string // why it is not
}
