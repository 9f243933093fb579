package dpds

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
)

// Rules are what the algorithms are run with.
type Rules struct {
	Budget   cost.Money
	Deadline time.Duration
	Terms    ensemble.Terms
	Machines int            // at first: N_VM of eq. 6.1
	Fixed    bool           // SPDS: their number follows nothing but the budget
	Aware    bool           // WA-DPDS: a workflow is begun only if it can be paid
	Once     bool           // a machine is billed for one period, and ends by itself with it
	Ends     bool           // a machine may end by itself, as a pilot does with its walltime: another takes its place
	Scaling  ensemble.Share // v_max: never more than this times Machines
	High     ensemble.Share // u_h: utilisation above which there is one more
	Low      ensemble.Share // u_l: below which half of the idle ones go
	Interval time.Duration  // between two decisions
	Leaving  time.Duration  // that a machine may take to end; it is billed meanwhile
	Margin   cost.Money     // r_m: money that no workflow is admitted for
	Fixes    Fixes
}

// Fixes are what is corrected of the published rules, each for itself.
type Fixes struct {
	Leaving   bool // a period is spent that begins before a machine can end
	Booting   bool // machines that are not ready yet count in number and cost (trap T23)
	Afford    bool // one more is started only if all that are there can be kept besides
	Path      bool // no workflow is begun whose critical path is longer than the time that is left (T27)
	Again     bool // a workflow that was rejected is asked about again when money comes free (T26)
	RoundDown bool // half of the idle ones is rounded down, but for the last one (T24)
	Finish    bool // all machines go when no task is left
	Idle      bool // of machines that may go, those go first that have no task
}

// AllFixes are all of them.
var AllFixes = Fixes{Leaving: true, Booting: true, Afford: true, Path: true, Again: true, RoundDown: true, Finish: true,
	Idle: true}

// Default returns the published constants (the authors' program; corral-thesis, §1.6.7 and 1.6.8) for a budget, a
// deadline and the terms of machines, with all fixes. It is DPDS; set Fixed or Aware for the others.
func Default(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	return Rules{
		Budget: budget, Deadline: deadline, Terms: terms, Machines: terms.Machines(budget, deadline),
		Scaling: ensemble.Whole, High: 900_000, Low: 700_000, Interval: 90 * time.Second, Leaving: time.Second,
		Margin: min(margin, budget/100), Fixes: AllFixes,
	}
}

// margin is that of the authors' program, ten cents; of a budget of less than ten dollars a hundredth is enough.
const margin cost.Money = 100_000

// Published returns the same as the authors' program has it, without fixes.
func Published(budget cost.Money, deadline time.Duration, terms ensemble.Terms) Rules {
	r := Default(budget, deadline, terms)
	r.Machines, r.Margin, r.Fixes = terms.MachinesPublished(budget, deadline), margin, Fixes{}
	return r
}

// Place is where a ready task stands in the queue: behind all of workflows of a higher priority.
func (r Rules) Place(workflow, _ int) int64 { return int64(workflow) }
