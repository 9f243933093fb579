package planner

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
)

func seeded(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

// Make checks every plan with the validator before returning it, so an error is a bug in one of the two.
func TestEveryPlanIsValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		problem := randomProblem(t, rng, 40)
		for _, objective := range plan.Objectives {
			pl, err := Make(problem, plan.Goal{Objective: objective, Tradeoff: plan.Share(rng.IntN(1_000_001))}, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			if !pl.Feasible && len(pl.Reasons) == 0 {
				rt.Fatal("no plan, and no reason")
			}
		}
	})
}

func TestSameProblemSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		var first []byte
		for range 2 {
			problem := randomProblem(t, rand.New(rand.NewPCG(seed, 0)), 40)
			pl, err := Make(problem, plan.Goal{Objective: plan.Tradeoff, Tradeoff: plan.Whole / 2}, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			text, err := json.Marshal(pl)
			if err != nil {
				rt.Fatal(err)
			}
			if first != nil && !bytes.Equal(first, text) {
				rt.Fatalf("%s\n%s", first, text)
			}
			first = text
		}
	})
}

// A deadline or a budget that the nearest plan meets is feasible when it is requested.
func TestTheNearestPlanIsWithinReach(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		problem, pl := feasible(t, seeded(rt), 20)
		goal := plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(1 + time.Duration(pl.Makespan)/100)}
		refused, err := Make(problem, goal, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if refused.Feasible {
			return // waits and overheads are 0 there
		}
		goal.Deadline = refused.Nearest.Makespan
		if err := validator.Check(problem, refused.Nearest); err == nil {
			rt.Fatal("the nearest plan meets the deadline that was out of reach")
		}
		again, err := Make(problem, goal, Options{})
		if err != nil || !again.Feasible {
			rt.Fatalf("%v, %+v", err, again.Reasons)
		}
	})
}

// A suggestion is feasible together with the bound that it does not mention: both budget and deadline are met.
func TestWhatIsWithinReachKeepsTheOtherBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		problem, pl := feasible(t, seeded(rt), 20)
		share := func(label string) int64 { return rapid.Int64Range(1, 150).Draw(rt, label) }
		goal := plan.Goal{Objective: plan.Cost, Deadline: max(1, pl.Makespan*corral.Seconds(share("deadline"))/100)}
		goal.Budget = &cost.Amount{Money: max(1, pl.Cost.Money*cost.Money(share("budget"))/100), Unit: pl.Cost.Unit}
		refused, err := Make(problem, goal, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if refused.Feasible {
			return
		}
		said := refused.Reasons[0]
		if late := refused.Nearest.Makespan > goal.Deadline; late != strings.Contains(said, "--deadline") {
			rt.Fatalf("the nearest ends after %s of %s: %s", refused.Nearest.Makespan, goal.Deadline, said)
		}
		if dear := refused.Nearest.Cost.Money > goal.Budget.Money; dear != strings.Contains(said, "--budget") {
			rt.Fatalf("the nearest costs %s of %s: %s", refused.Nearest.Cost, goal.Budget, said)
		}
	})
}

func TestTheFrontGetsDearerTheSoonerItEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		_, pl := feasible(t, seeded(rt), 20)
		for i := 1; i < len(pl.Front); i++ {
			if pl.Front[i].Makespan <= pl.Front[i-1].Makespan || pl.Front[i].Cost.Money > pl.Front[i-1].Cost.Money {
				rt.Fatalf("%+v after %+v", pl.Front[i], pl.Front[i-1])
			}
		}
	})
}
