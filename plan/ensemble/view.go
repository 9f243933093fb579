package ensemble

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// A View is the input of a decision about machines, in a simulation or a real run.
type View struct {
	Now      time.Duration
	Ended    cost.Money // cost of the machines that have ended
	Machines []Instance // requested and not ended, in order of request
	Asked    int        // machines requested since the beginning
	Over     bool       // no remaining task may still run
}

// An Instance is one machine of a view.
type Instance struct {
	ID    int
	From  time.Duration // start of its billing: the request or, for a pilot, the start of its job
	Held  bool          // the machine is billed; false for a queued pilot, whose From is meaningless
	Ready bool          // the machine runs tasks; otherwise it is queued or booting
	Slots int           // tasks that it can run at a time
	Busy  int           // tasks that it is running
}

// Orders are the actions to take on machines.
type Orders struct {
	Start int           // number of machines to request
	Stop  []int         // IDs of machines to end at once; their tasks must run again
	Next  time.Duration // time of the next decision, after now
}

// cost returns the cost of a machine so far, for the periods begun. A queued machine counts one period, which is billed
// once its job starts.
func (v View) cost(m Instance, t Terms) cost.Money { return t.Cost(v.held(m)) }

// Paid returns how much of the machine's billed time remains.
func (v View) Paid(m Instance, t Terms) time.Duration {
	held := v.held(m)
	return time.Duration(t.Periods(held))*t.Period - held
}

// Charge returns the additional cost of holding a machine for the given additional time.
func (v View) Charge(m Instance, t Terms, longer time.Duration) cost.Money {
	held := v.held(m)
	return t.Times(t.Periods(held+longer) - t.Periods(held))
}

func (v View) held(m Instance) time.Duration {
	if !m.Held {
		return 0
	}
	return v.Now - m.From
}

// Spent returns the cost so far of the given machines and of all machines that have ended.
func (v View) Spent(machines []Instance, t Terms) cost.Money {
	sum := v.Ended
	for _, m := range machines {
		sum = sum.Plus(v.cost(m, t))
	}
	return sum
}

// A Claim holds the expected demands of a workflow, and of the workflows that were begun.
type Claim struct {
	Workflow int           // its priority, 0 is the highest
	Runtime  time.Duration // sum over its tasks
	Path     time.Duration // its critical path
	Begun    time.Duration // runtime of all unfinished tasks of begun workflows, including running tasks in full
}

// Late returns the reason why a workflow cannot be completed in the remaining time, which is that its critical path is
// longer. It returns "" if the workflow can be completed.
func (c Claim) Late(left time.Duration) string {
	if left = max(0, left); c.Path <= left {
		return ""
	}
	return fmt.Sprintf("its critical path takes %s, but the deadline is in %s", c.Path,
		left.Truncate(time.Millisecond))
}

// Dear returns the reason why a workflow is not affordable, or "" if it is affordable. money is the amount that can be
// spent on running tasks from now on, including those of begun workflows. The amount that begun workflows do not need
// must exceed the cost of the workflow's tasks (Juve 2012, Algorithm 3).
func (c Claim) Dear(t Terms, money cost.Money) string {
	price, rest := t.Of(c.Runtime), money-t.Of(c.Begun)
	if price < rest {
		return ""
	}
	return fmt.Sprintf("its tasks cost at least %s, but %s is left for them",
		t.Amount(price).Brief(), t.Amount(max(0, rest)).Brief())
}

// A Strategy decides about machines and workflows.
type Strategy interface {
	Step(View) Orders               // returns the actions on machines; called first at the beginning
	Admit(View, Claim) Verdict      // decides whether to begin the workflow whose first task is next
	Place(workflow, task int) int64 // returns the key of a ready task in the queue; the smallest runs next
}

// A Verdict is the decision whether to begin a workflow.
type Verdict struct {
	Begin bool
	// The workflow will never begin; if false, Admit may be called again when another workflow has ended.
	Never  bool
	Reason string // why it is not begun
}
