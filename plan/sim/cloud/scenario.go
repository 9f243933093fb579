package cloud

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/chance"
)

// A Scenario is an ensemble, the available machines, and the random behaviour. Nil functions mean no randomness.
type Scenario struct {
	Ensemble ensemble.Ensemble
	Deadline time.Duration // no task begins at the deadline or later, and tasks that end after it do not count
	Terms    ensemble.Terms
	Machines Kind

	Runtime func(workflow, task int) time.Duration // runtime of a task; default: its estimate
	Speed   func(machine int) float64              // factor for the runtimes on a machine; default: 1
	Delay   func(machine int) time.Duration        // time from the request for a machine until it is ready
	// Fails returns the share of its runtime after which an attempt fails; 1: it does not fail.
	Fails func(workflow, task, attempt int) (at float64)

	Record bool // record where and when each task ran
}

// A Kind describes the machines. The zero Kind is a virtual machine: it has one slot, is billed from its request, and
// may be held without limit.
type Kind struct {
	Slots  int           // number of tasks at a time; 0: one
	Queued bool          // the delay is a wait in a batch queue, which is not billed
	Ends   time.Duration // time from ready to end of a machine, which begins no task that would end later; 0: no end
	Most   int           // maximum number of machines at once; 0: no limit
}

func (k Kind) slots() int { return max(1, k.Slots) }

// An Outcome is the result of a scenario.
type Outcome struct {
	Completed ensemble.Score // workflows whose tasks all ended by the deadline
	Reasons   []string       // for each workflow, why it was not begun; empty if it was
	Cost      cost.Money
	Makespan  time.Duration   // time until the end of the last task that ended by the deadline
	Last      time.Duration   // time until the end of the last task, which may have ended after the deadline
	Ends      []time.Duration // for each workflow, the end of its last task, late or not; 0: some did not end
	Work      time.Duration   // total time of tasks that ended, whether they count or not
	Killed    int             // number of attempts that ended with their machines
	Failed    int             // number of attempts that failed
	Lost      time.Duration   // total time of these attempts
	Held      []Holding       // machines in the order of their requests
	Ran       []Execution     // tasks in the order of their ends, if Record is set
}

// A Holding records the times of a machine: From is the beginning of its billing.
type Holding struct {
	Asked, From, Ready, End time.Duration
	Cost                    cost.Money
	Unready                 bool // it ended before it was ready, which Ready would have been
}

// An Execution records when a task ran on a machine.
type Execution struct {
	Workflow, Task, Machine int
	Start, End              time.Duration
}

// Err makes runtimes follow a distribution. A random value depends only on the seed and, according to the distribution,
// on the workflow's position and the task's ID, on the task's kind, or on the machine's number, so that all policies
// encounter the same runtimes.
func (s *Scenario) Err(by sim.Spread, seed uint64) {
	s.Runtime, s.Speed = nil, nil
	e := s.Ensemble
	switch by.Law {
	case "":
	case "host":
		s.Speed = func(machine int) float64 {
			return chance.Lognormal(by.Size, seed, "host", chance.Number(machine))
		}
	default:
		s.Runtime = func(w, t int) time.Duration {
			task := &e[w].Tasks[t]
			return scaled(task.Runtime, by.Factor(seed, chance.Number(w), task.ID, task.Kind))
		}
	}
}

func scaled(d time.Duration, by float64) time.Duration {
	return time.Duration(float64(d) * by).Round(time.Millisecond)
}

// Failing makes each attempt of a task fail with the given probability, at a uniformly random share of its runtime.
func (s *Scenario) Failing(probability float64, seed uint64) {
	e := s.Ensemble
	s.Fails = func(w, t, attempt int) float64 {
		names := []string{"fails", chance.Number(w), e[w].Tasks[t].ID, chance.Number(attempt)}
		if chance.Draw(seed, names...) >= probability {
			return 1
		}
		names[0] = "fails at"
		return chance.Draw(seed, names...)
	}
}
