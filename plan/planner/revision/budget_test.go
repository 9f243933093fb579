package revision_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// TestPilotsThatTheBudgetEnds: the pilots that lose the least work for the money that they save end, and no more of
// them than the budget requires. A pilot ends with all its attempts.
func TestPilotsThatTheBudgetEnds(t *testing.T) {
	t.Parallel()
	minutes := func(n cost.Money) *cost.Amount { return &cost.Amount{Money: n * 1_000_000 / 60, Unit: cost.CPUHours} }
	working := func(number, cpus int) revision.Pilot {
		q := onePilot(number, revision.Working)
		q.CPUs, q.Began = cpus, 0
		return q
	}
	earlier := func(number int) revision.Pilot {
		q := working(number, 1)
		q.Phase = revision.Leaving
		return q
	}
	hedge := func(number, cpus int) revision.Pilot {
		q := onePilot(number, revision.Queued)
		q.CPUs = cpus
		return q
	}
	for name, c := range map[string]struct {
		pilots, beside []revision.Pilot
		running        []time.Duration // :: pilot → how long its task has run
		budget         cost.Money      // in cpu-minutes, 10 minutes after the beginning, with checks every minute
		ends           []int
	}{
		"one that saves enough, not several that lose less together": {
			pilots: []revision.Pilot{working(0, 8), working(1, 1)}, running: []time.Duration{5 * time.Minute, 4 * time.Minute},
			budget: 104, ends: []int{0},
		},
		"the one with the least lost work": {
			pilots:  []revision.Pilot{working(0, 2), working(1, 2)},
			running: []time.Duration{time.Minute, 9 * time.Minute}, budget: 47, ends: []int{0},
		},
		"one beside the plan that saves nothing like enough stays": {
			pilots: []revision.Pilot{working(0, 8)}, beside: []revision.Pilot{hedge(1, 1)},
			running: []time.Duration{time.Minute}, budget: 90, ends: []int{0},
		},
		"one beside the plan before those with work": {
			pilots: []revision.Pilot{working(0, 8)}, beside: []revision.Pilot{hedge(1, 4)},
			running: []time.Duration{time.Minute}, budget: 99, ends: []int{1},
		},
		"an earlier attempt ends with its pilot, whose work counts": {
			pilots: []revision.Pilot{working(0, 1), working(1, 1)}, beside: []revision.Pilot{earlier(0)},
			running: []time.Duration{9 * time.Minute, time.Minute}, budget: 35, ends: []int{1},
		},
		"a pilot with two attempts ends once": {
			pilots: []revision.Pilot{working(0, 1)}, beside: []revision.Pilot{earlier(0)},
			running: []time.Duration{9 * time.Minute}, budget: 20, ends: []int{0},
		},
	} {
		v := scene(t)
		v.Now, v.Period, v.Grace = 10*time.Minute, time.Minute, time.Minute
		v.Goal.Budget, v.Pilots, v.Beside = minutes(c.budget), c.pilots, c.beside
		for i, d := range c.running {
			v.Tasks[i] = revision.Task{State: corral.TaskRunning, Pilot: i, Since: v.Now - d}
		}
		var ends []int
		for _, d := range revision.Guard(v) {
			ends = append(ends, d.Pilot)
		}
		if fmt.Sprint(ends) != fmt.Sprint(c.ends) {
			t.Errorf("%s: %v end, want %v", name, ends, c.ends)
		}
	}
}
