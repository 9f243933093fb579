package montecarlo_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/dag"
)

func random(t testing.TB, rng *rand.Rand, tasks int) montecarlo.Model {
	t.Helper()
	m := montecarlo.Model{Problem: plan.Problem{
		Work: plantest.Layers(rng, tasks), Cluster: plan.Cluster{Hop: 2 * time.Millisecond, Rate: 1500},
		Sites: []plan.Site{plantest.Queue("near", time.Duration(1+rng.IntN(10))*time.Minute)},
	}}
	switch rng.IntN(3) {
	case 0:
		m.Spread = montecarlo.DefaultSpread
	case 1:
		m.Spread = sim.Spread{Law: "transformation", Size: 0.2}
	default:
		m.Spread = sim.Spread{Law: "uniform", Size: 0.3}
	}
	return m
}

// confidences makes plans with confidences, and returns how many of these agree, within the given number of percentage
// points, with fresh outcomes of another seed. exact is the number of outcomes for the plans' own shares; 0: according
// to Draws.
func confidences(t *testing.T, plans, tasks, exact, fresh int, within float64) (agree int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 83))
	for made := 0; made < plans; {
		m := random(t, rng, tasks/2+rng.IntN(tasks))
		m.Exact = exact
		soonest, err := planner.Make(m.Problem, plan.Goal{Objective: plan.Makespan}, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		goal := plan.Goal{Objective: plan.Cost, Confidence: []float64{0.8, 0.9, 0.95}[rng.IntN(3)],
			Deadline: corral.Seconds(float64(soonest.Makespan) * (1.3 + rng.Float64()))}
		begun := time.Now()
		pl, err := m.Make(t.Context(), goal, planner.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(begun)
		if !pl.Feasible {
			if c := pl.Nearest.Confidence; c == nil || c.Reached >= goal.Confidence {
				t.Errorf("no plan for %+v, but %+v", goal, c)
			}
			continue
		}
		made++
		c := pl.Confidence
		if c.Asked != goal.Confidence || c.Reached < c.Asked || c.NextCheaper != nil && *c.NextCheaper >= c.Asked {
			t.Errorf("confidence %+v", c)
		}
		again := m.Share(pl, time.Duration(goal.Deadline), fresh, 2)
		t.Logf("%d tasks, asked %g, reached %.3f, fresh %.3f; %s; %s", len(m.Work.Tasks), c.Asked, c.Reached, again,
			took, pl.Reasons[len(pl.Reasons)-1])
		if math.Abs(again-c.Reached) <= within {
			agree++
		}
	}
	return agree
}

func TestConfidencesAreTrue(t *testing.T) {
	t.Parallel()
	if agree := confidences(t, 1, 12, 150, 150, 0.12); agree < 1 {
		t.Error("a plan does not agree with fresh outcomes")
	}
}

// If no plan reaches a confidence, the answer is the safest one.
func TestNoPlanIsSureEnough(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(1, 2)), 20)
	m.Exact = 200
	m.Sites[0].Waits = func(_ plan.Shape, share float64) time.Duration {
		if share > 0.7 {
			return 24 * time.Hour
		}
		return time.Minute
	}
	goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(2 * time.Hour), Confidence: 0.9,
		Bounds: plan.Bounds{MaxPilots: 1}} // of several, one would be in time
	pl, err := m.Make(t.Context(), goal, planner.Options{})
	if err != nil || pl.Feasible || pl.Nearest == nil {
		t.Fatalf("%+v, %v", pl, err)
	}
	c := pl.Nearest.Confidence
	if c.Asked != 0.9 || c.Reached < 0.6 || c.Reached > 0.8 ||
		!strings.Contains(pl.Reasons[0], fmt.Sprintf("the safest does in %.3f; --confidence 0.", c.Reached)) {
		t.Errorf("%+v: %v", c, pl.Reasons)
	}
	goal.Confidence = 0.6
	if pl, err = m.Make(t.Context(), goal, planner.Options{}); err != nil || !pl.Feasible || pl.Confidence.Reached < 0.6 {
		t.Errorf("%+v, %v", pl.Reasons, err)
	}
}

// A plan that is not simulated assumes a quantile of the waits.
func TestWaitShare(t *testing.T) {
	t.Parallel()
	soon := corral.Seconds(time.Hour)
	for _, tt := range []struct {
		goal  plan.Goal
		tasks int
		want  float64
	}{
		{plan.Goal{}, 10, 0.5},
		{plan.Goal{Confidence: 0.9}, 10, 0.9},
		{plan.Goal{Deadline: soon, Confidence: 0.9}, 10, 0.5},
		{plan.Goal{Deadline: soon, Confidence: 0.9}, 50_001, 0.9},
		{plan.Goal{Deadline: soon}, 50_001, 0.5},
	} {
		if got := montecarlo.WaitShare(tt.goal, tt.tasks); got != tt.want {
			t.Errorf("WaitShare(%+v, %d) = %g, want %g", tt.goal, tt.tasks, got, tt.want)
		}
	}
	for tasks, want := range map[int]int{1: 1600, 500: 1600, 1000: 800, 16_000: 50, 50_000: 50, 50_001: 0} {
		if got := montecarlo.Draws(tasks); got != want {
			t.Errorf("Draws(%d) = %d, want %d", tasks, got, want)
		}
	}
}

// reread encodes a plan and decodes it again.
func reread(t *testing.T, pl *plan.Plan) (read plan.Plan) {
	t.Helper()
	text, err := json.Marshal(pl)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A plan is checked and simulated from its own record, with and without present pilots. A task that takes a second
// longer is detected.
func TestAPlanIsCheckedByItself(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		m := random(t, rand.New(rand.NewPCG(seed, 7)), 30)
		for i, drawn := range m.Sites { // times of plans are whole milliseconds
			m.Sites[i].Wait = func(s plan.Shape) time.Duration { return drawn.Wait(s).Round(time.Millisecond) }
		}
		for i, task := range m.Work.Tasks {
			m.Work.Tasks[i].Runtime = task.Runtime.Round(time.Millisecond)
		}
		if seed%2 == 0 {
			m.Present = []plan.Present{present(2, time.Hour), present(1, plan.Unbounded)}
			m.Present[0].Running = []plan.Running{{Task: m.Work.Graph.Order()[0]}}
		}
		pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		read := reread(t, pl)
		read.Number(m.Work)
		problem := read.Assumed.Problem(m.Work)
		if all := validator.All(problem, &read); len(all) != 0 {
			t.Errorf("seed %d: %v", seed, all[0])
		}
		alone := montecarlo.Model{Problem: problem}
		if len(m.Present) > 0 && !alone.Outcomes(&read, 1, 3)[0].Finished {
			t.Errorf("seed %d: played with the pilots that it says are there, its work is not done", seed)
		}
		read.Schedule[len(read.Schedule)/2].End += corral.Seconds(time.Second)
		if all := validator.All(problem, &read); len(all) == 0 || all[0].Rule != "runtime" {
			t.Errorf("seed %d: a task that takes a second longer: %v", seed, all)
		}
	}
}

// In a simulation from the plan's record, the waits are those of the sites, except between the recorded quantiles: a
// few of the 100 outcomes may differ.
func TestAPlanStandsForItself(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(5, 6)), 20)
	pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := reread(t, pl)
	alone := montecarlo.Model{Problem: read.Assumed.Problem(m.Work)}
	if alone.Spread, err = sim.ParseSpread(read.Assumed.Spread); err != nil || alone.Spread != m.Spread {
		t.Fatalf("%v, %v", alone.Spread, err)
	}
	a := montecarlo.Summarize(m.Outcomes(pl, 100, 3), plan.Goal{}, cost.CPUHours)
	b := montecarlo.Summarize(alone.Outcomes(&read, 100, 3), plan.Goal{}, cost.CPUHours)
	if d := float64(a.Makespan.Median)/float64(b.Makespan.Median) - 1; math.Abs(d) > 0.02 ||
		math.Abs(a.Finished-b.Finished) > 0.045 {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestSlowHostsInOutcomes: in an outcome, tasks on hosts with half the speed take twice as long.
func TestSlowHostsInOutcomes(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(3, 4)), 30)
	m.Exact, m.Spread = 1, sim.Spread{}
	for i := range m.Sites {
		m.Sites[i].Speed = 0.5
	}
	pl, err := m.Make(t.Context(), plan.Goal{Objective: plan.Makespan}, planner.Options{})
	if err != nil || !pl.Feasible {
		t.Fatalf("%+v, %v", pl, err)
	}
	want := 2 * m.Work.CPUTime()
	if o := m.Outcomes(pl, 1, 1)[0]; !o.Finished || (o.Work-want).Abs() > time.Second {
		t.Errorf("%+v, want %s of work", o, want)
	}
}

// A budget with a confidence is kept, with the deadline, in the share of fresh outcomes that is asked, within 3 points.
func TestConfidenceInABudget(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 7))
	m := random(t, rng, 60)
	m.Spread, m.Exact = montecarlo.DefaultSpread, 400
	goal := plan.Goal{Objective: plan.Cost}
	cheapest, err := m.Make(t.Context(), goal, planner.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	goal.Deadline, goal.Confidence = 2*cheapest.Makespan, 0.9
	goal.Budget = &cost.Amount{Money: cheapest.Cost.Money * 2, Unit: cheapest.Cost.Unit}
	pl, err := m.Make(t.Context(), goal, planner.Options{Seed: 1})
	if err != nil || !pl.Feasible {
		t.Fatalf("%v, %+v", err, pl)
	}
	kept := montecarlo.Summarize(m.Outcomes(pl, 400, 2), goal, cost.CPUHours)
	if *kept.InBudget < 0.87 || *kept.InTime < 0.87 {
		t.Errorf("within the budget %.3f, within the deadline %.3f; %v", *kept.InBudget, *kept.InTime, pl.Reasons)
	}
	goal.Budget.Money = cheapest.Cost.Money // the estimated cost is exceeded in about half of the outcomes
	if pl, err = m.Make(t.Context(), goal, planner.Options{Seed: 1}); err != nil || pl.Feasible {
		t.Errorf("%v, %+v", err, pl.Confidence)
	}
}

// A budget without a deadline is kept with a confidence, too: a slower plan is taken, whose cost is exceeded rarely.
func TestConfidenceInABudgetAlone(t *testing.T) {
	t.Parallel()
	m := random(t, rand.New(rand.NewPCG(5, 7)), 60)
	m.Spread, m.Exact = montecarlo.DefaultSpread, 400
	goal := plan.Goal{Objective: plan.Makespan}
	fastest, err := m.Make(t.Context(), goal, planner.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	within := func(pl *plan.Plan) float64 {
		return *montecarlo.Summarize(m.Outcomes(pl, 400, 2), goal, cost.CPUHours).InBudget
	}
	goal.Budget = &fastest.Cost
	if share := within(fastest); share > 0.7 {
		t.Errorf("an exact budget is kept in a share of %.3f", share)
	}
	goal.Confidence = 0.9
	pl, err := m.Make(t.Context(), goal, planner.Options{Seed: 1})
	if err != nil || !pl.Feasible || pl.Confidence == nil {
		t.Fatalf("%v, %+v", err, pl)
	}
	if share := within(pl); share < 0.87 || !strings.Contains(pl.Reasons[len(pl.Reasons)-1], "it meets the budget in") {
		t.Errorf("the budget is kept in a share of %.3f: %v", share, pl.Reasons)
	}
	goal.Budget = &cost.Amount{Money: fastest.Cost.Money / 1000, Unit: fastest.Cost.Unit}
	if pl, err = m.Make(t.Context(), goal, planner.Options{Seed: 1}); err != nil || pl.Feasible {
		t.Errorf("with a thousandth of the cost: %v, %+v", err, pl)
	}
}

// TestMeasuredErrors: the runtimes of a kind with measured errors are drawn from these, those of other kinds from the
// assumed distribution.
func TestMeasuredErrors(t *testing.T) {
	t.Parallel()
	const estimate = 10 * time.Minute
	w := plan.Work{Name: "pair"}
	for _, kind := range []string{"measured", "other"} {
		w.Tasks = append(w.Tasks, plan.Task{ID: kind, Kind: kind, Runtime: estimate, Needs: corral.Resources{CPUs: 1}})
	}
	w.Graph, _ = dag.New(2, nil)
	m := montecarlo.Model{Problem: plan.Problem{Work: w, Errors: plan.Errors{"measured": {Runtimes: 20, Ratios: []float64{2, 4}}}}}
	for seed := range uint64(20) {
		s := m.Scenario(&plan.Plan{}, seed)
		if took := s.Runtime(0, 1); took < 2*estimate || took > 4*estimate {
			t.Errorf("the measured kind takes %s, want 2 to 4 × its estimate", took)
		}
		if took := s.Runtime(1, 1); took != estimate {
			t.Errorf("the other kind takes %s, want its estimate", took)
		}
	}
	m.Spread = montecarlo.DefaultSpread
	if s := m.Scenario(&plan.Plan{}, 1); s.Runtime(1, 1) == estimate {
		t.Error("the other kind does not differ from its estimate")
	}
	if s := m.AsPlanned(&plan.Plan{}); s.Runtime(0, 1) != estimate {
		t.Error("a plan is played with errors")
	}
}

// The makespan of a plan can be met as a deadline by a plan for any other objective, and its cost as a budget.
func TestWhatAPlanReachesIsWithinReach(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 1, 2, 79, 98, 132, 143, 148} {
		m := random(t, rand.New(rand.NewPCG(seed, 12)), 40)
		m.Sites[0].Walltime, m.Sites[0].Pilots, m.Sites[0].Speed = 45*time.Minute, 4, 0.7
		for _, goal := range []plan.Goal{{Objective: plan.Makespan}, {Objective: plan.Cost}} {
			made, err := m.Make(t.Context(), goal, planner.Options{})
			if err != nil || !made.Feasible {
				t.Fatalf("%d: %v, %+v", seed, err, made)
			}
			other := plan.Goal{Objective: plan.Cost, Deadline: made.Makespan}
			if goal.Objective == plan.Cost {
				other = plan.Goal{Objective: plan.Makespan, Budget: &made.Cost}
			}
			if again, err := m.Make(t.Context(), other, planner.Options{}); err != nil || !again.Feasible {
				t.Errorf("%d: %s reaches %s for %s, but %+v is refused: %v, %v", seed, goal.Objective, made.Makespan, made.Cost,
					other, again.Reasons, err)
			}
		}
	}
}
