package request

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

var (
	hour   = corral.Seconds(time.Hour)
	budget = &cost.Amount{Money: 40_000_000, Unit: cost.CPUHours}
)

// TestObjectiveOfAPlan: a missing objective follows from the given values, which remain unchanged.
func TestObjectiveOfAPlan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		given, want plan.Goal
	}{
		{"nothing", plan.Goal{}, plan.Goal{Objective: plan.Tradeoff, Tradeoff: 0.5}},
		{"a weight", plan.Goal{Tradeoff: 0.2}, plan.Goal{Objective: plan.Tradeoff, Tradeoff: 0.2}},
		{"a deadline", plan.Goal{Deadline: hour}, plan.Goal{Objective: plan.Cost, Deadline: hour}},
		{"a budget", plan.Goal{Budget: budget}, plan.Goal{Objective: plan.Makespan, Budget: budget}},
		{"both", plan.Goal{Deadline: hour, Budget: budget},
			plan.Goal{Objective: plan.Cost, Deadline: hour, Budget: budget}},
		{"an objective", plan.Goal{Objective: plan.Tradeoff}, plan.Goal{Objective: plan.Tradeoff}},
		{"fewest cpus", plan.Goal{Objective: plan.CPUs, Deadline: hour},
			plan.Goal{Objective: plan.CPUs, Deadline: hour}},
	} {
		in := api.NewPlan{Workflow: json.RawMessage(`{}`), Goal: tc.given}
		if err := CheckPlan(&in, time.Now()); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, in.Goal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestCheckPlanRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		place string
		edit  func(*api.NewPlan)
		says  string
	}{
		{"workflow", func(p *api.NewPlan) { p.Workflow = nil }, "missing"},
		{"sites", func(p *api.NewPlan) { p.Sites = []string{"a", "b", "a"} }, "given twice"},
		{"sites", func(p *api.NewPlan) { p.Sites = make([]string, 65) }, "65 are more than 64"},
		{"profiles", func(p *api.NewPlan) { p.Profiles = make([]api.ProfileSource, 65) }, "65 are more than 64"},
		{"deadline_s", func(p *api.NewPlan) { p.Goal.Deadline = -hour }, "-1h0m0s is not a positive duration"},
		{"budget", func(p *api.NewPlan) { p.Goal.Budget = &cost.Amount{Unit: "ch"} }, "must be positive"},
		{"budget", func(p *api.NewPlan) { p.Goal.Budget = &cost.Amount{Money: -1, Unit: "ch"} }, "must be positive"},
		{"budget", func(p *api.NewPlan) { p.Goal.Budget = &cost.Amount{Money: 1, Unit: "bean"} }, "must be ch (cpu-"},
		{"tradeoff", func(p *api.NewPlan) { p.Goal.Tradeoff = math.NaN() }, "NaN is not between 0"},
		{"tradeoff", func(p *api.NewPlan) { p.Goal.Tradeoff = 2 }, "2 is not between 0"},
		{"confidence", func(p *api.NewPlan) { p.Goal.Confidence = 1 }, "1 is not between 0 and 1"},
		{"confidence", func(p *api.NewPlan) { p.Goal.Confidence = math.NaN() }, "NaN is not between 0 and 1"},
		{"default_runtime_s", func(p *api.NewPlan) { p.DefaultRuntime = -hour }, "is negative"},
		{"host_cpus", func(p *api.NewPlan) { p.HostCPUs = -1 }, "is negative"},
		{"objective", func(p *api.NewPlan) { p.Goal.Objective = "joy" }, "none of [makespan cost cpus tradeoff]"},
		{"objective", func(p *api.NewPlan) { p.Goal.Objective = plan.CPUs }, "requires a deadline"},
	} {
		in := api.NewPlan{Workflow: json.RawMessage(`{}`)}
		tc.edit(&in)
		err := CheckPlan(&in, time.Now())
		if p := api.ProblemOf(err); err == nil || p.Kind != corral.Invalid || p.Place != tc.place ||
			!strings.Contains(p.Detail, tc.says) {
			t.Errorf("%s: %v, want it to say %q", tc.place, err, tc.says)
		}
	}
}

// TestNumbersOfAPlan: fractions, seeds and money must be in their ranges, and messages contain the range.
func TestNumbersOfAPlan(t *testing.T) {
	t.Parallel()
	const seed, money = "whole number from 0 to 9007199254740991", "from 0 to 1000000000000"
	for body, says := range map[string]string{
		`{"goal": {"tradeoff": 0.25, "confidence": 0.9}, "seed": 9007199254740991}`: "",
		`{"goal": {"budget": {"amount": 40.5, "unit": "ch"}}}`:                      "",

		`{"goal": {"tradeoff": -0.5}}`:                         "tradeoff: -0.5 is not between 0 and 1",
		`{"goal": {"confidence": "high"}}`:                     "confidence: want a number from 0 to 1, not a string",
		`{"seed": 9007199254740992}`:                           "seed: 9007199254740992 is not between 0 and",
		`{"seed": -1}`:                                         "seed: -1 is not between 0",
		`{"seed": 1.5}`:                                        "seed: want a " + seed + ", in digits only, not 1.5",
		`{"goal": {"budget": {"amount": 1e13, "unit": "ch"}}}`: "amount: 1e13 is not between 0 and",
		`{"goal": {"budget": {"amount": "40", "unit": "ch"}}}`: "amount: want a decimal number " + money +
			" with at most six digits behind the point, not a string",
	} {
		var in api.NewPlan
		err := Decode([]byte(body), &in)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", body, err, says)
		}
	}
}
