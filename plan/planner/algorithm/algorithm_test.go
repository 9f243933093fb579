package algorithm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/clustering"
)

const processors = 64

// question returns a generated workflow and a queue with other users' jobs, which run for as long as requested. No
// further jobs arrive.
func question(k uint64) algorithm.Question {
	jobs := workload.Draw(600, processors, 0.75, k)
	for i := range jobs {
		jobs[i].Requested = jobs[i].Runtime
	}
	m := queue.Machine{Processors: processors, Policy: queue.Conservative}
	q := queue.Alone(queue.States(m, jobs, []time.Duration{time.Duration(50+k) * time.Hour})[0])
	room := queue.Unplanned(q).From(q.Now())
	site := plan.Site{
		Name: "site", Hosts: plan.Unlimited, Pilots: plan.Unlimited, CPUs: processors,
		Host: corral.Resources{CPUs: processors, MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited,
			DiskMiB: plan.Unlimited},
		Walltime: plan.Unbounded, Margin: time.Minute, Overhead: 10 * time.Second, Tariff: plan.CoreHours,
		Wait: func(plan.Shape) time.Duration { return time.Hour }, Calendar: plan.Calendar{Room: room},
	}
	work := plantest.Levels(plantest.Grid{Tasks: 40, Levels: 5, Runtime: time.Hour, Processors: 4, Parents: 2}, k)
	return algorithm.Question{
		Model: montecarlo.Model{Problem: plan.Problem{Work: work, Sites: []plan.Site{site}},
			Queues: montecarlo.Queues{{"site", ""}: q}},
		Goal:    plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2},
		Options: planner.Options{Clustering: &clustering.Rule{}, Seed: k},
		Odds: func(string, string) virtual.Predictor {
			return func(n int, walltime, within time.Duration) float64 {
				if at, ok := room.Fit(0, walltime, n); ok && at <= within {
					return 1
				}
				return 0
			}
		},
	}
}

// TestUsual: a few hundred tasks decide which algorithm is used, on any machine.
func TestUsual(t *testing.T) {
	t.Parallel()
	for tasks, want := range map[int]plan.Algorithm{1: plan.Auto, 200: plan.Auto, 201: plan.Staircase} {
		if got := algorithm.Usual(tasks); got != want {
			t.Errorf("for %d tasks: %s, want %s", tasks, got, want)
		}
	}
}

// The confidence of a plan whose pilots are requested early is that of its own outcomes.
func TestEarlyPilotsAreJudged(t *testing.T) {
	t.Parallel()
	judged := 0
	for k := range uint64(4) {
		q := question(k)
		q.Model.Spread, q.Model.Exact = montecarlo.DefaultSpread, 60
		q.Goal = plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(14 * time.Hour), Confidence: 0.5}
		made, err := q.Make(t.Context(), plan.VAR)
		if err != nil || made.Confidence == nil {
			continue
		}
		judged++
		met := 0
		for _, o := range q.Model.Outcomes(made, q.Model.Exact, q.Options.Seed) {
			if o.Finished && o.Makespan <= time.Duration(q.Goal.Deadline) {
				met++
			}
		}
		share := float64(met) / float64(q.Model.Exact)
		said := fmt.Sprintf("in a share of %.3f of", share)
		if got := made.Confidence.Reached; got != share || !strings.Contains(strings.Join(made.Reasons, "\n"), said) {
			t.Errorf("%d: confidence %g is reported, but its own outcomes reach %g: %v", k, got, share, made.Reasons)
		}
	}
	if judged == 0 {
		t.Error("no plan was judged")
	}
}

// With exact runtimes the tasks finish as planned, at the planned cost, if pilots start as planned (F33). If no choice
// of slots is feasible with corrald's matching of tasks and pilots, there is no plan.
func TestPlansInSlotsComeTrue(t *testing.T) {
	t.Parallel()
	const n = 12
	for _, by := range []plan.Algorithm{plan.MOGA, plan.Greedy} {
		unsure := 0
		for k := range uint64(n) {
			q := question(k)
			made, err := q.Make(t.Context(), by)
			if corral.KindOf(err) == corral.Unsatisfiable && strings.Contains(err.Error(), "too late for its slot") {
				unsure++
				continue
			}
			if err != nil || !made.Feasible || made.Algorithm != by {
				t.Errorf("%d: %s: %v, %v", k, by, made, err)
				continue
			}
			came := sim.Run(q.Model.AsPlanned(made))
			cost := came.CoreHours() / made.CoreHours
			if came.Ending != sim.Done || came.Makespan() != time.Duration(made.Makespan) || cost < 0.99 || cost > 1.01 {
				t.Errorf("%d: %s: planned %s for %s in %d pilots; %s after %s with %.3f of it", k, by, made.Makespan,
					made.Cost, len(made.Pilots), came.Ending, came.Makespan(), cost)
			}
		}
		if unsure > 1 {
			t.Errorf("%s: %d of %d times no plan comes out in time", by, unsure, n)
		}
	}
}

// The same question yields the same bytes, for each algorithm (F35).
func TestSameQuestionSameBytes(t *testing.T) {
	t.Parallel()
	for _, by := range []plan.Algorithm{plan.VAR, plan.Auto} { // auto makes the plans of all others
		first, err := question(7).Make(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		second, err := question(7).Make(t.Context(), by)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(first)
		b, _ := json.Marshal(second)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s\nand then\n%s", by, a, b)
		}
	}
}

// Auto chooses the best plan according to its list, and explains the choice.
func TestAutoTakesTheBest(t *testing.T) {
	t.Parallel()
	for k := range uint64(2) {
		q := question(k)
		for _, objective := range plan.Objectives[2*k : 2*k+2] {
			q.Goal.Objective, q.Goal.Deadline = objective, 0
			if objective == plan.CPUs {
				q.Goal.Deadline = corral.Seconds(100 * time.Hour)
			}
			made, err := q.Make(t.Context(), plan.Auto)
			if err != nil || len(made.Contest) != len(plan.Algorithms)-1 {
				t.Fatalf("%d: %+v, %v", k, made, err)
			}
			value := func(e plan.Entrant) float64 {
				switch objective {
				case plan.Makespan:
					return float64(e.Makespan)
				case plan.Cost:
					return float64(e.Cost.Money)
				case plan.CPUs:
					return float64(e.PeakCPUs)
				}
				return e.Weight
			}
			won := slices.IndexFunc(made.Contest, func(e plan.Entrant) bool { return e.Won })
			for _, e := range made.Contest {
				best, equal := made.Contest[won], 1.0 // within 1 % of the least cost or weight the soonest is taken
				if objective == plan.Cost || objective == plan.Tradeoff {
					equal = 1.0101
				}
				better := value(e)*equal < value(best) ||
					equal > 1 && value(e) <= value(best) && e.Makespan < best.Makespan
				if e.Missed == 0 && better || made.Algorithm != best.Algorithm {
					t.Errorf("%d: %s, plan by %s: %+v", k, objective, made.Algorithm, made.Contest)
				}
			}
			if last := made.Reasons[len(made.Reasons)-1]; !strings.HasPrefix(last, string(made.Algorithm)+" is chosen") {
				t.Errorf("%d: %q", k, last)
			}
		}
	}
}

// A staircase that assumes short waits meets a deadline that the current queue does not allow: auto simulates it,
// reports that, and suggests a feasible deadline.
func TestAutoKnowsTheQueue(t *testing.T) {
	t.Parallel()
	q := question(17)
	q.Model.Sites[0].Wait = func(plan.Shape) time.Duration { return 0 }
	plain, err := q.Make(t.Context(), plan.Staircase)
	if err != nil {
		t.Fatal(err)
	}
	q.Goal = plan.Goal{Objective: plan.Cost, Deadline: plain.Makespan + corral.Seconds(time.Hour)}
	if plain, err = q.Make(t.Context(), plan.Staircase); err != nil || !plain.Feasible {
		t.Fatalf("%+v, %v", plain, err)
	}
	made, err := q.Make(t.Context(), plan.Auto)
	if err != nil || made.Feasible || made.Nearest == nil || len(made.Contest) != len(plan.Algorithms)-1 ||
		!strings.Contains(made.Reasons[0], "misses the goal in most outcomes") ||
		!strings.Contains(made.Reasons[0], "--deadline ") {
		t.Errorf("%+v, %v", made, err)
	}
	// A tiny budget is unreachable for every algorithm.
	little := cost.Amount{Money: 1, Unit: plain.Cost.Unit}
	q = question(0)
	q.Goal = plan.Goal{Objective: plan.Makespan, Budget: &little}
	if made, err = q.Make(t.Context(), plan.Auto); err != nil || made.Feasible || made.Nearest == nil {
		t.Errorf("with a budget of nearly nothing: %+v, %v", made, err)
	}
}

// A chain of a wide and a narrow stage in a queue with waits of an hour: the pilot of the second stage is requested at
// once if only a request at once is certain to be in time, and is held until its stage has ended, at a price.
func TestVirtualReservationOfALaterPilot(t *testing.T) {
	t.Parallel()
	q := question(0)
	q.Odds = func(string, string) virtual.Predictor {
		return func(_ int, _, within time.Duration) float64 { return min(1, within.Hours()/10) }
	}
	plain, err := q.Make(t.Context(), plan.Staircase)
	if err != nil {
		t.Fatal(err)
	}
	made, err := q.Make(t.Context(), plan.VAR)
	if err != nil {
		t.Fatal(err)
	}
	early, before := 0, slices.Clone(plain.Pilots)
	for i, p := range made.Pilots {
		if !p.Early {
			continue
		}
		early++
		was := slices.IndexFunc(before, func(was plan.Pilot) bool {
			return p.Walltime == was.Walltime+was.Start && p.CPUs == was.CPUs && p.Hosts == was.Hosts
		})
		if p.Submit != 0 || time.Duration(p.Start) != time.Hour || was < 0 {
			t.Fatalf("pilot %d is %+v, and without reservations the others are %+v", i, p, before)
		}
		before = slices.Delete(before, was, was+1)
	}
	if early == 0 || made.Cost.Money <= plain.Cost.Money || made.Makespan > plain.Makespan {
		t.Errorf("%d early pilots, %s instead of %s: %q", early, made.Cost, plain.Cost, made.Reasons)
	}
}

// A pilot that fits into the room of its queue is queued for its planned time, and costs no more than planned.
func TestCombinedHoldsNothingIdleWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	q := question(0)
	q.Model.Sites[0].Room = slot.NewProfile(processors, 0)
	plain, err := q.Make(t.Context(), plan.Staircase)
	if err != nil {
		t.Fatal(err)
	}
	made, err := q.Make(t.Context(), plan.Combined)
	if err != nil || made.Cost != plain.Cost || made.Makespan != plain.Makespan {
		t.Fatalf("%+v, %v", made, err)
	}
	for i, p := range made.Pilots {
		if p.Start != plain.Pilots[i].Start || p.Submit > 0 && p.Submit != p.Start {
			t.Errorf("pilot %d is %+v, and was %+v", i, p, plain.Pilots[i])
		}
	}
}

// A stage is placed where its tasks fit: on the one of two sites that has GPUs, although the other site is free at
// once.
func TestGreedyLooksAtHosts(t *testing.T) {
	t.Parallel()
	q := question(0)
	for i := range q.Model.Work.Tasks {
		q.Model.Work.Tasks[i].Needs.GPUs = 1
	}
	late := q.Model.Sites[0]
	late.Name, late.Room, late.Host.GPUs = "gpu", slot.NewProfile(processors, 0), 8
	late.Room.Take(0, 2*time.Hour, processors)
	q.Model.Sites[0].Room, q.Model.Sites[0].Host.GPUs = slot.NewProfile(processors, 0), 0
	q.Model.Sites, q.Model.Queues = append(q.Model.Sites, late), nil
	for _, by := range []plan.Algorithm{plan.Greedy, plan.MOGA} {
		made, err := q.Make(t.Context(), by)
		if err != nil || !made.Feasible {
			t.Errorf("%s: %+v, %v", by, made, err)
		}
	}
}

// Two queues of one site share its cpus.
func TestSeveralQueues(t *testing.T) {
	t.Parallel()
	q := question(0)
	q.Model.Queues = nil
	q.Model.Sites[0].Queue, q.Model.Sites[0].Room = "x", slot.NewProfile(processors, 0)
	other := q.Model.Sites[0]
	other.Queue = "y"
	q.Model.Sites = append(q.Model.Sites, other)
	made, err := q.Make(t.Context(), plan.MOGA)
	if err != nil || !made.Feasible || made.PeakCPUs > processors {
		t.Errorf("%+v, %v", made, err)
	}
}

// An algorithm that is not applicable reports the reason, and Auto continues with the other algorithms.
func TestWhatCannotBeSearched(t *testing.T) {
	t.Parallel()
	q := question(0)
	q.Model.Sites[0].Room = slot.NewProfile(1, 0)
	q.Model.Sites[0].Room.Take(0, slot.Forever, 1)
	if _, err := q.Make(t.Context(), plan.MOGA); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("no slot: %v", err)
	}
	made, err := q.Make(t.Context(), plan.Auto)
	if err != nil || made.Contest[2].Why == "" || made.Contest[1].Why == "" {
		t.Errorf("%+v, %v", made, err)
	}
	impossible := question(0)
	impossible.Model.Work.Tasks[0].Needs.CPUs = 2 * processors
	for _, by := range plan.Algorithms { // all return the planner's reason
		if made, err := impossible.Make(t.Context(), by); err != nil || made.Feasible ||
			!strings.Contains(made.Reasons[0], "no host has that") {
			t.Errorf("%s: %+v, %v", by, made, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := q.Make(ctx, plan.Auto); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("after its context has ended: %v", err)
	}
}

// With a confidence, auto compares roughly judged plans, but returns the plan that its algorithm makes alone, with the
// same share of outcomes.
func TestAutoIsAsSureAsItsAlgorithm(t *testing.T) {
	t.Parallel()
	p, err := plantest.Problem(4)
	if err != nil {
		t.Fatal(err)
	}
	q := algorithm.Question{Model: montecarlo.Model{Problem: p, Spread: montecarlo.DefaultSpread, Exact: 120},
		Goal: plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(12 * time.Hour), Confidence: 0.9}}
	auto, err := q.Make(t.Context(), plan.Auto)
	if err != nil || !auto.Feasible {
		t.Fatalf("%+v, %v", auto, err)
	}
	alone, err := q.Make(t.Context(), auto.Algorithm)
	if err != nil || alone.Confidence == nil {
		t.Fatalf("%+v, %v", alone, err)
	}
	a, _ := json.Marshal([]any{auto.Pilots, auto.Confidence})
	b, _ := json.Marshal([]any{alone.Pilots, alone.Confidence})
	if !bytes.Equal(a, b) || alone.Confidence.Reached < 0.9 {
		t.Errorf("auto takes %s: %s, but alone it makes %s", auto.Algorithm, a, b)
	}
}

// TestAStageWaitsForASingleTask: that task seldom ends when it was expected to, and each pilot waits for a time of its
// own. The pilots of the next stage are there nevertheless when it begins.
func TestAStageWaitsForASingleTask(t *testing.T) {
	t.Parallel()
	m := montecarlo.Model{Spread: montecarlo.DefaultSpread, Exact: 200, Problem: plan.Problem{Work: funnel(t, 12),
		Sites: []plan.Site{grid()}, Cluster: plan.Cluster{Hop: 2 * time.Millisecond, Rate: 1500}}}
	q := algorithm.Question{Model: m.Remembering(), Goal: plan.Goal{Objective: plan.Cost,
		Deadline: corral.Seconds(3 * time.Hour), Confidence: 0.9}}
	made, err := q.Make(t.Context(), plan.Staircase)
	if err != nil || !made.Feasible || made.Confidence.Reached < 0.9 {
		t.Fatalf("%v, %q, confidence %+v", err, made.Reasons, made.Confidence)
	}
	if share := m.Share(made, 3*time.Hour, 500, 99); share < 0.87 {
		t.Errorf("in other outcomes the plan meets its deadline in a share of %.3f, want 0.9 ± 0.03", share)
	}
}
