package ensemble

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// A Plan is a static one: which workflows are run, on which machines, and when each task is.
type Plan struct {
	Admitted []bool   // by priority
	Reasons  []string // of each workflow, why it was not admitted; empty if it was
	Machines []Planned
	Cost     cost.Money
}

// Planned is a machine of a plan: its tasks in the order of their times. It is held from the beginning of the first to
// the end of the last one.
type Planned []Slot

// A Slot is the time of a task at its machine.
type Slot struct {
	Workflow, Task int
	Start, End     time.Duration
}

// Start returns when a planned machine is to be ready. It has a task.
func (p Planned) Start() time.Duration { return p[0].Start }

// End returns when it is not needed any longer.
func (p Planned) End() time.Duration { return p[len(p)-1].End }
