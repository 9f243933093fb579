package dpds

import (
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Rules are the parameters of the algorithms.
type Rules struct {
	Budget   cost.Money
	Deadline time.Duration
	Terms    ensemble.Terms
	Machines int           // initial number: N_VM of eq. 6.1
	Fixed    bool          // SPDS: the number of machines depends only on the budget
	Aware    bool          // WA-DPDS: a workflow begins only if it is affordable
	Once     bool          // a machine is billed for one period, and ends on its own after that period
	Ends     bool          // a machine may end on its own, like a pilot at its walltime, and is replaced
	Scaling  plan.Share    // v_max: upper limit relative to Machines
	High     plan.Share    // u_h: utilization above which a machine is added
	Low      plan.Share    // u_l: utilization below which half of the idle machines are ended
	Interval time.Duration // time between two decisions
	Leaving  time.Duration // maximum time that a machine takes to end; it is billed during this time
	Margin   cost.Money    // r_m: money that is not used for admitting workflows
	Fixes    Fixes
}

// Fixes selects corrections of the published rules; each can be enabled separately.
type Fixes struct {
	Leaving   bool // a period that begins before a machine can end counts as spent
	Booting   bool // machines that are not ready yet count in number and cost
	Afford    bool // a machine is added only if all present machines remain affordable
	Path      bool // workflows with a critical path longer than the remaining time are not begun
	Again     bool // a rejected workflow is considered again when money is freed
	RoundDown bool // half the number of idle machines is rounded down, except for the last machine
	Finish    bool // all machines are ended when no task is left
	Idle      bool // among the machines that may be ended, those without a task are ended first
}

// AllFixes enables all fixes.
var AllFixes = Fixes{Leaving: true, Booting: true, Afford: true, Path: true, Again: true, RoundDown: true, Finish: true,
	Idle: true}

// Default returns the published constants (those of the authors' program) for a budget, a
// deadline and the terms of machines, with all fixes. It configures DPDS; set Fixed or Aware for the other algorithms.
func Default(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	return Rules{
		Budget: budget, Deadline: deadline, Terms: terms, Machines: terms.Machines(budget, deadline),
		Scaling: plan.Whole, High: 900_000, Low: 700_000, Interval: 90 * time.Second, Leaving: time.Second,
		Margin: min(margin, budget/100), Fixes: AllFixes,
	}
}

// margin is the Margin of the authors' program, ten cents; for budgets below ten dollars, Default uses 1 % of the
// budget.
const margin cost.Money = 100_000

// Published returns the rules of the authors' program, without fixes.
func Published(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	r := Default(budget, deadline, terms)
	r.Machines, r.Margin, r.Fixes = terms.MachinesPublished(budget, deadline), margin, Fixes{}
	return r
}

// Place returns the key of a ready task in the queue; it places the task behind all tasks of workflows with a higher
// priority.
func (r Rules) Place(workflow, _ int) int64 { return int64(workflow) }
