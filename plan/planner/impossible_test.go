package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/workflow/dag"
)

// TestImpossible: a refusal names the number that makes the plan impossible, and a suggestion names its flag.
func TestImpossible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		needs corral.Resources
		takes time.Duration
		shape int
		edit  func(*plan.Site)
		want  string
		near  int // cpus of the nearest plan's hosts; 0: there is none
	}{
		{name: "cpus", needs: corral.Resources{CPUs: 64}, want: "task a needs 64 cpus, but no host has that: site hpc has " +
			"hosts of 8 cpus, 1000 MiB of memory at most"},
		{name: "memory", needs: corral.Resources{CPUs: 1, MemoryMiB: 2000}, want: "task a needs 1 cpu, 2000 MiB of memory, and"},
		{name: "gpus", needs: corral.Resources{CPUs: 1, GPUs: 1}, want: "task a needs 1 cpu, 1 gpu, but no host has that"},
		{name: "walltime", takes: 3 * time.Hour, want: "task a takes 3h0m0s, but no pilot stays that long: site hpc has a " +
			"longest walltime of 2h0m0s, of which 1h59m50s are for tasks"},
		{name: "a full site", edit: func(s *plan.Site) { s.Pilots = 0 }, want: "no site accepts a pilot now: site hpc has as " +
			"many as its limits and those of the account allow"},
		{name: "a site without cpus", edit: func(s *plan.Site) { s.CPUs = 0 }, want: "no site accepts a pilot now: site hpc " +
			"has no cpus that are free for one"},
		{name: "a shape too large", shape: 64, near: 8, want: "no site has hosts of 64 cpus: the largest, at site hpc, has 8 " +
			"cpus; --shape 8 is within reach"},
		{name: "a shape too small", shape: 1, needs: corral.Resources{CPUs: 2}, near: 2, want: "task a needs 2 cpus, and hosts " +
			"of 1 cpu have too few; --shape 2 is within reach"},
	} {
		graph, err := dag.New(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		task := plan.Task{ID: "a", Needs: c.needs, Runtime: max(c.takes, time.Minute)}
		task.Needs.CPUs = max(1, task.Needs.CPUs)
		site := plan.Site{Name: "hpc", Host: corral.Resources{CPUs: 8, MemoryMiB: 1000, DiskMiB: plan.Unlimited}, Hosts: 4,
			Pilots: 10, CPUs: 32, Walltime: 2 * time.Hour, Overhead: 10 * time.Second, Tariff: plan.CoreHours,
			Wait: func(plan.Shape) time.Duration { return 0 }}
		if c.edit != nil {
			c.edit(&site)
		}
		made, err := planner.Make(plan.Problem{Work: plan.Work{Graph: graph, Tasks: []plan.Task{task}},
			Sites: []plan.Site{site}}, plan.Goal{Objective: plan.Makespan}, planner.Options{Shape: c.shape})
		if err != nil || made.Feasible || !strings.HasPrefix(made.Reasons[0], c.want) {
			t.Errorf("%s: %v, %q; want %q", c.name, err, made.Reasons, c.want)
			continue
		}
		near := 0
		if made.Nearest != nil {
			near = made.Nearest.Pilots[0].CPUs
		}
		if near != c.near {
			t.Errorf("%s: the nearest plan has hosts of %d cpus, want %d", c.name, near, c.near)
		}
	}
}

// TestDeadlineOutOfReach: the suggested deadline is later than the requested one, also as printed, and is accepted.
func TestDeadlineOutOfReach(t *testing.T) {
	t.Parallel()
	const year = 366 * 24 * time.Hour
	for _, c := range []struct {
		takes, overhead, deadline time.Duration
		budget                    cost.Money // 0: none
		want                      string
	}{
		{takes: time.Minute, overhead: 2 * time.Second, deadline: 30 * time.Second,
			want: "the critical path of 1m0s, which no number of cpus shortens; --deadline 1m2s is within reach"},
		{takes: 10 * time.Second, overhead: 5*time.Second + 20*time.Millisecond, deadline: 15 * time.Second,
			want: "the fastest ends after 15.02s; --deadline 16s is within reach"},
		{takes: 10 * time.Second, overhead: 5*time.Second + time.Millisecond, deadline: 15 * time.Second,
			want: "the fastest ends after 15.001s; --deadline 16s is within reach"},
		{takes: time.Hour, overhead: 300 * time.Millisecond, deadline: time.Hour,
			want: "the fastest ends after 1h0m0.3s; --deadline 1h0m1s is within reach"},
		{takes: year, overhead: time.Second, deadline: year,
			want: "the fastest ends after 8784h0m1s; a plan without --deadline is within reach"},
		{takes: year, overhead: time.Second, deadline: time.Hour,
			want: "the critical path of 8784h0m0s, which no number of cpus shortens; a plan without --deadline is within reach"},
		{takes: year, overhead: time.Hour, deadline: year, budget: 1,
			want: "costs 8785ch; --budget 8785ch without --deadline is within reach"},
	} {
		graph, err := dag.New(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		task := plan.Task{ID: "a", Needs: corral.Resources{CPUs: 1}, Runtime: c.takes}
		site := plan.Site{Name: "hpc", Host: corral.Resources{CPUs: 1, MemoryMiB: 1000, DiskMiB: plan.Unlimited}, Hosts: 1,
			Pilots: 1, CPUs: 1, Walltime: plan.Unbounded, Overhead: c.overhead, Tariff: plan.CoreHours,
			Wait: func(plan.Shape) time.Duration { return 0 }}
		goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(c.deadline)}
		if c.budget > 0 {
			goal.Budget = &cost.Amount{Money: c.budget, Unit: cost.CPUHours}
		}
		made, err := planner.Make(plan.Problem{Work: plan.Work{Graph: graph, Tasks: []plan.Task{task}},
			Sites: []plan.Site{site}}, goal, planner.Options{})
		if err != nil || made.Feasible || !strings.HasSuffix(made.Reasons[0], c.want) {
			t.Errorf("a deadline of %s: %v, %q; want %q", c.deadline, err, made.Reasons, c.want)
		}
	}
}
