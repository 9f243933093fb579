package cloud

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/chance"
)

// A Scenario is an ensemble, the machines that are to be had, and what chance does. Functions that are nil leave
// nothing to chance.
type Scenario struct {
	Ensemble ensemble.Ensemble
	Deadline time.Duration // no task begins at it or later, and what ends after it is lost
	Terms    ensemble.Terms
	Machines Kind

	Runtime func(workflow, task int) time.Duration         // what a task takes; by default its estimate
	Speed   func(machine int) float64                      // by which a machine's tasks take longer; by default 1
	Delay   func(machine int) time.Duration                // from the request for a machine to when it is ready
	Fails   func(workflow, task, attempt int) (at float64) // the share of its runtime at which it fails; 1: it does not

	Record bool // the outcome says where and when each task ran
}

// A Kind says what machines are. The zero Kind is a virtual machine: of one slot, billed from its request, and held for
// as long as one likes.
type Kind struct {
	Slots  int           // tasks at a time; 0: one
	Queued bool          // the delay is a wait in a batch queue: it is not billed
	Ends   time.Duration // a machine ends so long after it is ready, and begins no task that takes longer; 0: never
	Most   int           // at once; 0: no limit
}

func (k Kind) slots() int { return max(1, k.Slots) }

// An Outcome is what came of a scenario.
type Outcome struct {
	Completed ensemble.Score // workflows all of whose tasks ended by the deadline
	Reasons   []string       // of each workflow, why it was not begun; empty if it was
	Cost      cost.Money
	Makespan  time.Duration // until the last task's end that counts
	Work      time.Duration // of tasks that ended, whether they count or not
	Killed    int           // attempts of tasks that ended with their machines
	Failed    int           // attempts that failed
	Lost      time.Duration // that these took
	Held      []Holding     // machines in the order in which they were asked for
	Ran       []Execution   // of tasks that ended, in the order of their ends, if it was to be recorded
}

// A Holding is a machine's time: From is when its billing began.
type Holding struct{ Asked, From, Ready, End time.Duration }

// An Execution is a task's time at a machine.
type Execution struct {
	Workflow, Task, Machine int
	Start, End              time.Duration
}

// Err has runtimes differ from their estimates by a spread. What is drawn depends on the seed, the place of the
// workflow and the task's ID, its kind, or the machine's number alone, so that all policies meet the same runtimes.
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

// Failing has each attempt of a task fail with some probability, at an even share of its runtime (§1.6.11).
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
