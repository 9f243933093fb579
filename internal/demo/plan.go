package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/format"
)

// A plan says how many one-cpu pilots to ask for and what they will need.
type plan struct {
	pilots   int
	tasks    int
	work     time.Duration // sum of the estimates
	path     time.Duration // the longest chain of estimates
	makespan time.Duration // list schedule of the estimates on the pilots
	reason   string
}

// choose plans for a machine with cpus processors: half of them, but at least two pilots, so that the machine stays
// usable and the workflow still has something to run side by side. The prediction is the list schedule of the
// workflow's own estimates, in which nothing but tasks takes time.
func choose(ctx context.Context, file string, cpus int) (plan, error) {
	w, _, err := format.ReadFile(ctx, file, workflow.Options{})
	if err != nil {
		return plan{}, err
	}
	p := plan{pilots: max(2, cpus/2), tasks: len(w.Tasks), reason: fmt.Sprintf("max(2, %d cpus ÷ 2)", cpus)}
	cost := make([]time.Duration, len(w.Tasks))
	for i, t := range w.Tasks {
		cost[i] = t.Estimate
		p.work += t.Estimate
	}
	p.path = w.Graph.CriticalPath(cost)
	p.makespan, _ = dag.ListSchedule(w.Graph, cost, nil, p.pilots)
	return p, nil
}
