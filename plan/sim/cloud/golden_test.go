package cloud_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/dpds"
	"github.com/corral-pilot/corral/plan/planner/spss"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

const (
	budget   = 18_000_000
	deadline = 6 * time.Hour
)

// The worked example for the dynamic algorithms, as published and corrected: where and when each task runs.
// DPDS completes no workflow, because the last task of a misses the deadline by five minutes;
// WA-DPDS rejects c, and completes a; the third machine, which is free from the beginning, gets the next task.
func TestGolden3(t *testing.T) {
	t.Parallel()
	s := cloud.Scenario{Ensemble: plantest.Three(), Deadline: deadline, Terms: ensemble.Hourly, Record: true}
	for _, tt := range []struct {
		name  string
		rules func(r *dpds.Rules)
		score ensemble.Score
		ran   []string
	}{
		{"DPDS", func(*dpds.Rules) {}, "000", []string{
			"0: a70 0-70", "0: a95 70-165", "0: b75 165-240", "0: b60 240-300",
			"1: b70 0-70", "1: a110 70-180", "1: b90 180-270", "1: c50 270-320",
			"2: c60 0-60", "2: c45 60-105", "2: a100 105-205"}},
		{"WA-DPDS", func(r *dpds.Rules) { r.Aware = true }, "100", []string{
			"0: a70 0-70", "0: a110 70-180", "0: a160 180-340",
			"1: b70 0-70", "1: a100 70-170", "1: b90 170-260",
			"2: a95 70-165", "2: b75 165-240", "2: b60 240-300"}},
		{"SPDS", func(r *dpds.Rules) { r.Fixed = true }, "000", nil},
	} {
		for _, r := range []dpds.Rules{
			dpds.Published(budget, deadline, ensemble.Hourly), dpds.Default(budget, deadline, ensemble.Hourly),
		} {
			r.Low = 500_000
			tt.rules(&r)
			r.Fixes.Path = false // WA-DPDS as published begins workflow b, which it cannot complete
			got := cloud.Online(s, r)
			if got.Completed != tt.score || got.Cost > budget {
				t.Errorf("%s: %s at %s, want %s", tt.name, got.Completed, got.Cost, tt.score)
			}
			if ran := lines(s.Ensemble, got); tt.ran != nil && !slices.Equal(ran, tt.ran) {
				t.Errorf("%s: ran\n%q, want\n%q", tt.name, ran, tt.ran)
			}
		}
	}
}

// lines lists the tasks that ran, machine by machine.
func lines(e ensemble.Ensemble, o cloud.Outcome) (all []string) {
	ran := slices.Clone(o.Ran)
	slices.SortStableFunc(ran, func(a, b cloud.Execution) int {
		return 1e9*(a.Machine-b.Machine) + int((a.Start - b.Start).Minutes())
	})
	for _, x := range ran {
		all = append(all, fmt.Sprintf("%d: %s %.0f-%.0f", x.Machine, e[x.Workflow].Tasks[x.Task].ID, x.Start.Minutes(),
			x.End.Minutes()))
	}
	return all
}

// With the estimated runtimes a static plan runs as planned, at the planned cost.
func TestBoundKeepsThePlan(t *testing.T) {
	t.Parallel()
	p := spss.Published(budget, deadline, ensemble.Hourly).Make(plantest.Three())
	s := cloud.Scenario{Ensemble: plantest.Three(), Deadline: deadline, Terms: ensemble.Hourly, Record: true}
	got := cloud.Bound(s, p)
	if got.Completed != "110" || got.Cost != p.Cost {
		t.Errorf("%s at %s, want 110 at %s", got.Completed, got.Cost, p.Cost)
	}
	for _, x := range got.Ran {
		found := slices.ContainsFunc(p.Machines[x.Machine], func(slot ensemble.Turn) bool {
			return slot == ensemble.Turn{Workflow: x.Workflow, Task: x.Task, Start: x.Start, End: x.End}
		})
		if !found {
			t.Errorf("%+v is not in the plan", x)
		}
	}
}
