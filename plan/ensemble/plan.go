package ensemble

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
)

// A Plan is a static plan: it fixes the workflows to run, the machines, and the time of each task.
type Plan struct {
	Admitted []bool   // by priority
	Reasons  []string // for each workflow, why it was rejected; empty if it was admitted
	Machines []Planned
	Cost     cost.Money
}

// Planned is a machine of a plan: its tasks in order of time. It is held from the start of the first task to the end of
// the last.
type Planned []Turn

// A Turn is the time of a task on its machine.
type Turn struct {
	Workflow, Task int
	Start, End     time.Duration
}

// Start returns when the machine must be ready. The machine must have a task.
func (p Planned) Start() time.Duration { return p[0].Start }

// End returns when the machine is no longer needed.
func (p Planned) End() time.Duration { return p[len(p)-1].End }
