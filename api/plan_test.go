package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// TestNewPlanArrives checks that a request for a plan arrives unchanged, its workflow with the same lines.
func TestNewPlanArrives(t *testing.T) {
	t.Parallel()
	const document = "{\n\t\"name\" : \"x\"\n}"
	var body []byte
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		answer(w, http.StatusCreated, corral.Plan{ID: 1, State: corral.PlanReady})
	})
	in := NewPlan{
		Cluster: "mine", Workflow: json.RawMessage(document), WorkflowName: `odd"workflow":0.json`, Sites: []string{"a", "b"},
		Goal: plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(90 * time.Second), Tradeoff: plan.Whole / 2,
			Budget: &cost.Amount{Money: 40_500_000, Unit: cost.CPUHours}},
		Estimates: Estimates{DefaultRuntime: corral.Seconds(time.Second)}, HostCPUs: 4, Seed: 7,
	}
	p, err := c.CreatePlan(t.Context(), in, "")
	if err != nil || p.ID != 1 || p.State != corral.PlanReady {
		t.Errorf("CreatePlan() = %+v, %v", p, err)
	}
	var got NewPlan
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if diff := cmp.Diff(in, got); diff != "" {
		t.Errorf("request (-sent +arrived):\n%s", diff)
	}
	if !strings.Contains(string(body), `"amount":40.5`) || !strings.Contains(string(body), `"deadline_s":90`) {
		t.Errorf("body %s, want decimal money, and seconds", body)
	}
	in.Workflow = json.RawMessage("{\n\"a\": 1,\n}")
	if _, err := c.CreatePlan(t.Context(), in, ""); corral.KindOf(err) != corral.Invalid ||
		!strings.Contains(err.Error(), in.WorkflowName+":3:") {
		t.Errorf("junk: %v, want an Invalid error at line 3", err)
	}
}

// TestRoutesOfPlans checks that each call of the client is one request, with a key of its own if it changes something.
func TestRoutesOfPlans(t *testing.T) {
	t.Parallel()
	type asked struct {
		request string
		keyed   bool
	}
	var got asked
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = asked{r.Method + " " + r.URL.String(), r.Header.Get(KeyHeader) != ""}
		if strings.HasSuffix(r.URL.Path, "/plans") || strings.HasSuffix(r.URL.Path, "/history") {
			answer(w, http.StatusOK, List[any]{Items: []any{}})
			return
		}
		answer(w, http.StatusOK, corral.Plan{ID: 3, State: corral.PlanProvisioned})
	})
	move := func(do func(*Client, context.Context, corral.PlanID) (corral.Plan, error)) func(context.Context) error {
		return func(ctx context.Context) error {
			p, err := do(c, ctx, 3)
			if p.State != corral.PlanProvisioned {
				t.Errorf("answer %+v", p)
			}
			return err
		}
	}
	for _, tc := range []struct {
		do   func(context.Context) error
		want asked
	}{
		{move((*Client).Plan), asked{"GET /v1/plans/3", false}},
		{move((*Client).ProvisionPlan), asked{"POST /v1/plans/3/provision", true}},
		{move((*Client).ReleasePlan), asked{"POST /v1/plans/3/release", true}},
		{move((*Client).RemovePlan), asked{"DELETE /v1/plans/3", true}},
		{func(ctx context.Context) error { _, err := c.Plans(ctx, Filter{All: true}); return err },
			asked{"GET /v1/plans?all=true", false}},
		{func(ctx context.Context) error { _, err := c.PlanHistory(ctx, 3); return err },
			asked{"GET /v1/plans/3/history", false}},
	} {
		if err := tc.do(t.Context()); err != nil || got != tc.want {
			t.Errorf("asked %+v, %v, want %+v", got, err, tc.want)
		}
	}
}
