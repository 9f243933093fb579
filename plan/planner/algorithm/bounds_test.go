package algorithm_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/validator"
)

// drawnBounds restricts a goal at random, by one or two bounds.
func drawnBounds(rng *rand.Rand, g *plan.Goal) {
	for range 1 + rng.IntN(2) {
		switch rng.IntN(4) {
		case 0:
			g.MaxCPUs = 1 + rng.IntN(24)
		case 1:
			g.MaxPilots = 1 + rng.IntN(4)
		case 2:
			g.NotBefore = corral.Seconds(time.Duration(1+rng.IntN(180)) * time.Minute)
		case 3:
			g.Static = true
		}
	}
}

// outside names the bound that a plan breaks, or "".
func outside(p plan.Problem, made *plan.Plan) string {
	b := made.Goal.Bounds
	switch {
	case b.MaxCPUs > 0 && plan.Peak(made.Pilots, "") > b.MaxCPUs:
		return fmt.Sprintf("%d cpus", plan.Peak(made.Pilots, ""))
	case b.MaxPilots > 0 && len(made.Pilots) > b.MaxPilots:
		return fmt.Sprintf("%d pilots", len(made.Pilots))
	}
	for _, q := range made.Pilots {
		if q.Submit < b.NotBefore || b.Static && (q.Submit > b.NotBefore || q.End < made.Makespan) {
			return fmt.Sprintf("a pilot from %s to %s", q.Submit, q.End)
		}
	}
	if err := validator.Check(p, made); err != nil {
		return err.Error()
	}
	return ""
}

var remedy = regexp.MustCompile(`(--max-cpus|--max-pilots|--deadline|without them|without --static|` +
	`without --not-before) ?(\S*)( with --deadline (\S+))? is within reach`)

// relax changes a goal as a reason suggests.
func relax(g plan.Goal, reason string) (plan.Goal, bool) {
	m := remedy.FindStringSubmatch(reason)
	if m == nil {
		return g, false
	}
	n, _ := strconv.Atoi(m[2])
	switch m[1] {
	case "--max-cpus":
		g.MaxCPUs = n
	case "--max-pilots":
		g.MaxPilots = n
	case "without them":
		g.Bounds = plan.Bounds{}
	case "without --static":
		g.Static = false
	case "without --not-before":
		g.NotBefore = 0
	}
	if at, err := time.ParseDuration(cmp.Or(m[4], m[2])); err == nil {
		g.Deadline = corral.Seconds(at)
	}
	return g, true
}

// Every algorithm keeps the bounds of a goal, also when the plan is executed with exact runtimes. A goal that is out of
// reach comes within reach by the change that the reason names.
func TestBoundsAreKept(t *testing.T) {
	t.Parallel()
	feasible := map[plan.Algorithm]int{}
	relaxed := 0
	for seed := range uint64(16) {
		p, err := plantest.Problem(seed)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		q := algorithm.Question{Model: montecarlo.Model{Problem: p}, Goal: plan.Goal{Objective: plan.Objectives[seed%2],
			Tradeoff: plan.Whole / 2}}
		if drawnBounds(rng, &q.Goal); rng.IntN(2) == 0 {
			q.Goal.Deadline = corral.Seconds(time.Duration(1+rng.IntN(6)) * time.Hour)
		}
		for _, by := range []plan.Algorithm{plan.Staircase, plan.Greedy, plan.MOGA, plan.Combined} {
			name := fmt.Sprintf("%d: %s, %+v", seed, by, q.Goal)
			made, err := q.Make(t.Context(), by)
			if corral.KindOf(err) == corral.Unsatisfiable && by != plan.Staircase {
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if made.Feasible {
				feasible[by]++
				if broken := outside(p, made); broken != "" {
					t.Errorf("%s: %s", name, broken)
				}
				if came := sim.Run(q.Model.AsPlanned(made)); came.Ending != sim.Done {
					t.Errorf("%s: %s", name, came.Ending)
				}
				continue
			}
			if by != plan.Staircase || strings.HasPrefix(made.Reasons[0], "task ") { // no walltime suffices for a task
				continue
			}
			again := q
			var ok bool
			if again.Goal, ok = relax(q.Goal, made.Reasons[0]); !ok {
				t.Errorf("%s: no remedy in %q", name, made.Reasons[0])
				continue
			}
			relaxed++
			if made, err := again.Make(t.Context(), by); err != nil || !made.Feasible {
				t.Errorf("%s: %+v: %v, %v", name, again.Goal.Bounds, err, made.Reasons)
			}
		}
	}
	for _, n := range feasible {
		if n < 6 || relaxed < 2 {
			t.Errorf("of 16 problems %v are feasible, and %d are relaxed: the test shows little", feasible, relaxed)
		}
	}
}
