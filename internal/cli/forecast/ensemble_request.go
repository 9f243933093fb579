package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// The algorithms.
const (
	SPDS      = rehearsal.SPDS
	DPDS      = rehearsal.DPDS
	WADPDS    = rehearsal.WADPDS
	SPSS      = rehearsal.SPSS
	Rehearsal = "rehearsal"
)

// Algorithms lists the supported algorithms.
var Algorithms = []string{Rehearsal, SPSS, WADPDS, DPDS, SPDS}

// The kinds of resources: machines of a cloud, or pilots.
const (
	VM     = "vm"
	Pilots = "pilots"
)

// The comparisons of SPSS: they determine whether a value equal to the limit fits.
const (
	LessThan = "lt"
	AtMost   = "le"
)

// An EnsembleRequest describes the simulation of an ensemble.
type EnsembleRequest struct {
	Algorithm string
	Published bool
	Budget    cost.Amount
	Deadline  corral.Seconds
	Seed      uint64
	Draws     int  // number of outcomes drawn by a rehearsal if runtimes have errors
	Record    bool // return the schedule
	MachineTerms
	Chance
	Switches
}

// MachineTerms describes the available machines.
type MachineTerms struct {
	Resource string
	Price    string         // per cpu-hour or host-hour; empty: a cpu-hour
	Billing  string         // empty: whole hours of a machine, and the walltime of a pilot
	CPUs     int            // number of tasks that a machine runs at a time
	Walltime corral.Seconds // walltime of a pilot
	Most     int            // maximum number of machines at once; 0: no limit
}

// Chance describes the possible deviations from a plan.
type Chance struct {
	Delay  corral.Seconds // time until a machine is ready; for a pilot, its wait in the queue
	Error  sim.Spread
	Errors []sim.Spread // errors for which the regret is computed
	// Actual returns what a task takes, whatever Error says; nil: as Error says. No algorithm reads it.
	Actual   func(workflow, task int) time.Duration
	Failures float64 // the probability that an attempt at a task fails
}

// Switches modifies an algorithm's rules. A nil or empty field means the algorithm's default.
type Switches struct {
	High, Low, Scaling, Alpha *plan.Share
	Interval                  *time.Duration
	Margin                    *cost.Money
	BudgetTest, FitTest, Tie  string
	Without                   []string // corrections that are omitted
}

// year is the maximum deadline.
const year = 366 * 24 * time.Hour

// check returns an error for a request that cannot be simulated.
func (in EnsembleRequest) check(unit cost.Unit) error {
	switch {
	case !slices.Contains(Algorithms, in.Algorithm):
		return corral.ErrorAt(corral.Invalid, "--algorithm", "%.40q is none of %q", in.Algorithm, Algorithms)
	case in.Budget.Unit != unit:
		return corral.ErrorAt(corral.Invalid, "--budget",
			"%s is in %s, but the price is in %s: use the same unit for both", in.Budget, in.Budget.Unit, unit)
	case in.Deadline <= 0:
		return corral.ErrorAt(corral.Invalid, "--deadline", "%s is not a positive duration", in.Deadline)
	case time.Duration(in.Deadline) > year:
		return corral.ErrorAt(corral.Invalid, "--deadline", "%s is more than a year", in.Deadline)
	case in.Draws < 0 || in.Draws > 1000:
		return corral.ErrorAt(corral.Invalid, "--draws", "%d is not between 0 and 1000", in.Draws)
	case in.Delay < 0:
		return corral.ErrorAt(corral.Invalid, "--delay", "%s is negative", in.Delay)
	case !(in.Failures >= 0 && in.Failures < 1):
		return corral.ErrorAt(corral.Invalid, "--failures", "%g is not a probability below 1", in.Failures)
	case in.Alpha != nil && *in.Alpha > plan.Whole:
		return corral.ErrorAt(corral.Invalid, "--alpha", "%s is not between 0 and 1", *in.Alpha)
	case in.Interval != nil && *in.Interval < time.Second:
		return corral.ErrorAt(corral.Invalid, "--interval", "%s is less than a second", *in.Interval)
	case in.Published && in.Algorithm == Rehearsal:
		return corral.ErrorAt(corral.Invalid, "--published", "the rehearsal is ours: name one of %q", Algorithms[1:])
	case in.Resource == Pilots && in.Algorithm == SPSS:
		return corral.ErrorAt(corral.Invalid, "--algorithm", "%s plans machines that can be held for any "+
			"time, and pilots have a walltime: use %s, %s, %s or %s", in.Algorithm, Rehearsal, WADPDS, DPDS, SPDS)
	}
	if err := cmp.Or(in.checkWithout(), in.checkUtilization()); err != nil {
		return err
	}
	for flag, x := range map[string]string{"--budget-test": in.BudgetTest, "--fit-test": in.FitTest} {
		if x != "" && x != LessThan && x != AtMost {
			return corral.ErrorAt(corral.Invalid, flag, "%.40q is neither %s nor %s", x, LessThan, AtMost)
		}
	}
	if in.Tie != "" && in.Tie != "first" && in.Tie != "last" {
		return corral.ErrorAt(corral.Invalid, "--tie", "%.40q is neither first nor last", in.Tie)
	}
	return nil
}

// checkUtilization refuses thresholds between which no utilization lies, so that a machine would be requested and
// released in turn.
func (in EnsembleRequest) checkUtilization() error {
	r := in.dynamic(ensemble.Terms{})
	if r.Low <= r.High {
		return nil
	}
	return corral.ErrorAt(corral.Invalid, "--u-low", "%s is above --u-high, which is %s: give a lower one", r.Low,
		r.High)
}

// terms returns the cost of a machine.
func (in EnsembleRequest) terms() (t ensemble.Terms, err error) {
	tariff, err := cost.ParseTariff(in.Price, in.Billing)
	if err != nil {
		return t, err
	}
	switch {
	case in.Resource != VM && in.Resource != Pilots:
		return t, corral.ErrorAt(corral.Invalid, "--resource", "%.40q is neither %s nor %s", in.Resource, VM,
			Pilots)
	case in.CPUs < 1:
		return t, corral.ErrorAt(corral.Invalid, "--shape", "%d is not a positive number of cpus", in.CPUs)
	case in.Resource == Pilots && in.Walltime < corral.Seconds(time.Minute):
		return t, corral.ErrorAt(corral.Invalid, "--walltime",
			"%s is less than a minute: name the time for which a pilot is held", in.Walltime)
	}
	if tariff.Rate.Weighs() {
		return t, corral.ErrorAt(corral.Invalid, "--price", "the memory and the GPUs of a simulated machine are not "+
			"known, and %s has weights: give a price per %s or %s", tariff.Rate, cost.CPUHour, cost.HostHour)
	}
	t.Unit, t.Period = tariff.Rate.Unit, tariff.Billing.Period
	if in.Billing == "" {
		t.Period = time.Hour
		if in.Resource == Pilots {
			t.Period = time.Duration(in.Walltime)
		}
	}
	_, t.Price = tariff.Rate.Charge(cost.Holding{Hosts: 1, CPUs: in.CPUs, Held: t.Period}, cost.Billing{})
	if t.Price <= 0 {
		return t, corral.ErrorAt(corral.Invalid, "--price", "a machine costs nothing for %s", t.Period)
	}
	return t, nil
}

// once reports whether a machine is billed for its whole walltime, whether or not it is used.
func (in EnsembleRequest) once() bool { return in.Resource == Pilots && in.Billing == "" }

// scenario returns the scenario to simulate.
func (in EnsembleRequest) scenario(e ensemble.Ensemble, terms ensemble.Terms) cloud.Scenario {
	s := cloud.Scenario{Ensemble: e, Deadline: time.Duration(in.Deadline), Terms: terms, Record: in.Record,
		Machines: cloud.Kind{Slots: in.CPUs, Most: in.Most}}
	if in.Most <= 0 { // more machines than tasks are useless
		s.Machines.Most = e.Tasks()
	}
	if in.Resource == Pilots {
		s.Machines.Queued, s.Machines.Ends = true, time.Duration(in.Walltime)
	}
	if in.Delay > 0 {
		s.Delay = func(int) time.Duration { return time.Duration(in.Delay) }
	}
	if s.Err(in.Error, in.Seed); in.Actual != nil {
		s.Runtime, s.Speed = in.Actual, nil
	}
	if in.Failures > 0 {
		s.Failing(in.Failures, in.Seed)
	}
	return s
}
