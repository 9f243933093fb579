package cloud_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/dpds"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// A trial is an ensemble with constraints and random behaviour.
type trial struct {
	cloud.Scenario
	budget cost.Money
	delay  time.Duration
}

// draw generates a trial: delays from 0 to 15 minutes, errors of up to 50 %, failing tasks.
func draw(rng *rand.Rand) trial {
	x := trial{Scenario: cloud.Scenario{Ensemble: plantest.Random(rng, 6, 40), Terms: ensemble.Hourly}}
	if period := []time.Duration{time.Hour, time.Hour, time.Minute, time.Second}[rng.IntN(4)]; period < time.Hour {
		x.Terms = ensemble.Terms{Price: cost.Money(period / (3600 * time.Microsecond)), Period: period}
	}
	b := x.Ensemble.Bounds(x.Terms)
	x.budget = b.LeastBudget + (b.MostBudget-b.LeastBudget)*cost.Money(rng.IntN(10))/9 + cost.Money(rng.IntN(3_000_000))
	x.Deadline = b.LeastDeadline + (b.MostDeadline-b.LeastDeadline)*time.Duration(rng.IntN(10))/9 + time.Minute
	x.delay = time.Duration([]int{0, 30, 90, 300, 600, 900}[rng.IntN(6)]) * time.Second
	x.Delay = func(int) time.Duration { return x.delay }
	x.Err([]sim.Spread{{}, {Law: "uniform", Size: 0.5}, {Law: "lognormal", Size: 0.5}, {Law: "host", Size: 0.3}}[rng.IntN(4)],
		rng.Uint64())
	if rng.IntN(3) == 0 {
		x.Failing(0.5*rng.Float64(), rng.Uint64())
	}
	return x
}

// rules generates rules of one of the three algorithms, corrected.
func (x trial) rules(rng *rand.Rand) dpds.Rules {
	r := dpds.Default(x.budget, x.Deadline, x.Terms)
	r.Fixed, r.Aware = rng.IntN(3) == 0, rng.IntN(2) == 0
	r.Scaling = ensemble.Share(1+rng.IntN(2)) * ensemble.Whole
	r.Ends = rng.IntN(3) == 0
	return r
}

// For any delays of machines, errors and failures: the corrected rules never exceed the budget, the simulation ends,
// each task of a workflow that counts has run to its end once, after its parents, and the simulation is deterministic.
func TestTheBudgetIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		x := draw(rng)
		x.Record = true
		r := x.rules(rng)
		got := cloud.Online(x.Scenario, r)
		if got.Cost > x.budget {
			rt.Fatalf("cost %s of %s: %+v", got.Cost, x.budget, got.Held)
		}
		var held cost.Money
		for _, h := range got.Held {
			held += h.Cost
			if h.Cost != x.Terms.Cost(h.End-h.From) || h.Unready != (h.End < h.Ready) {
				rt.Fatalf("a machine is billed from its request, ready or not: %+v", h)
			}
		}
		if held != got.Cost {
			rt.Fatalf("machines cost %s together, the outcome says %s", held, got.Cost)
		}
		if got.Makespan > min(got.Last, x.Deadline) {
			rt.Fatalf("makespan %s by the deadline, %s with late tasks", got.Makespan, got.Last)
		}
		ended := map[[2]int]cloud.Execution{}
		for _, run := range got.Ran {
			k := [2]int{run.Workflow, run.Task}
			if _, twice := ended[k]; twice {
				rt.Fatalf("task %v ends twice", k)
			}
			ended[k] = run
		}
		for k, w := range x.Ensemble {
			for i := range w.Tasks {
				run, ok := ended[[2]int{k, i}]
				if got.Completed[k] == '1' && (!ok || run.End > x.Deadline) {
					rt.Fatalf("workflow %d is complete without task %d: %+v", k, i, run)
				}
				for _, p := range w.Graph.Parents(i) {
					if before := ended[[2]int{k, p}]; ok && (before.End > run.Start || before.End == 0 && before.Start != 0) {
						rt.Fatalf("task %d of workflow %d begins before %d has ended", i, k, p)
					}
				}
			}
		}
		if again := cloud.Online(x.Scenario, r); fmt.Sprint(again) != fmt.Sprint(got) {
			rt.Fatal("the same case has two outcomes")
		}
	})
}

// The published rules do not count machines that are booting: if booting takes longer than the interval, the
// rules request one machine after another, and exceed the budget.
func TestThePublishedRulesForgetWhatBoots(t *testing.T) {
	t.Parallel()
	over := map[bool]int{}
	for seed := range uint64(400) {
		x := draw(rand.New(rand.NewPCG(seed, 1)))
		x.Fails, x.delay = nil, 900*time.Second
		for _, published := range []bool{true, false} {
			r := dpds.Default(x.budget, x.Deadline, x.Terms)
			if published {
				r = dpds.Published(x.budget, x.Deadline, x.Terms)
			}
			r.Scaling = 2 * ensemble.Whole
			if cloud.Online(x.Scenario, r).Cost > x.budget {
				over[published]++
			}
		}
	}
	if over[true] == 0 || over[false] > 0 {
		t.Errorf("over the budget: %d of 400 as published, %d corrected; want some, and none", over[true], over[false])
	}
}
