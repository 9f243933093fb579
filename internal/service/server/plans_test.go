package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// fan returns a workflow of one task followed by n parallel ones, each of which takes the given number of seconds;
// with 0 seconds they have no estimate.
func fan(n, seconds int) json.RawMessage {
	names := func(from, to int) string {
		var all []string
		for i := from; i <= to; i++ {
			all = append(all, fmt.Sprintf(`"t%d"`, i))
		}
		return strings.Join(all, ",")
	}
	specification := fmt.Sprintf(`{"name": "t", "id": "t0", "parents": [], "children": [%s]}`, names(1, n))
	execution := fmt.Sprintf(`{"id": "t0", "runtimeInSeconds": %d, "command": {"program": "true"}}`, seconds)
	for i := 1; i <= n; i++ {
		specification += fmt.Sprintf(`, {"name": "t", "id": "t%d", "parents": ["t0"], "children": []}`, i)
		execution += fmt.Sprintf(`, {"id": "t%d", "runtimeInSeconds": %d, "command": {"program": "true"}}`, i, seconds)
	}
	return fmt.Appendf(nil, `{"name": "fan", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [%s]},
"execution": {"makespanInSeconds": 0, "executedAt": "2026-01-01T00:00:00Z", "tasks": [%s]}}}`, specification, execution)
}

// newPlan requests a plan with the fewest core-hours within 21 minutes: 10 for one task, 10 for four at once.
func newPlan() api.NewPlan {
	return api.NewPlan{Workflow: fan(4, 600), WorkflowName: "fan.json", HostCPUs: 1,
		Goal: plan.Goal{Deadline: corral.Seconds(21 * time.Minute)}}
}

// documentOf decodes the planner's document.
func documentOf(t *testing.T, row corral.Plan) plan.Plan {
	t.Helper()
	var document plan.Plan
	if err := json.Unmarshal(row.Document, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// samePlan compares rows; the formatting of documents may differ.
func samePlan(t *testing.T, what string, a, b corral.Plan) {
	t.Helper()
	if a.Digest != b.Digest || !cmp.Equal(compact(t, a), compact(t, b)) {
		t.Errorf("%s: %+v and %+v, want the same", what, a, b)
	}
}

func compact(t *testing.T, row corral.Plan) corral.Plan {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, row.Document); err != nil {
		t.Fatal(err)
	}
	row.Document = b.Bytes()
	return row
}

// TestPlan: a plan is computed with its witness and stored; the same problem has the same plan.
func TestPlan(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	if row.State != corral.PlanReady || row.Owner != "local" || row.ClusterName != "default" || row.Workflow != "fan" {
		t.Errorf("plan %+v", row)
	}
	document := documentOf(t, row)
	if !document.Feasible || document.Goal.Objective != plan.Cost || document.PeakCPUs != 4 ||
		len(document.Schedule) != 5 || document.LowerBound == nil || *document.LowerBound != 4 {
		t.Errorf("document %s, want a schedule of 5 tasks on 4 cpus for little cost", row.Document)
	}
	samePlan(t, "the plan that is kept", must(f.Plan(t.Context(), row.ID))(t), row)
	again := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	if again.ID == row.ID || again.Digest != row.Digest {
		t.Errorf("the same problem has plan %d with %s, and plan %d with %s", row.ID, row.Digest, again.ID, again.Digest)
	}
	all := must(f.Plans(t.Context(), api.Filter{}))(t)
	if len(all) != 2 || all[0].ID != row.ID {
		t.Fatalf("plans %+v, want two", all)
	}
	var listed plan.Summary
	if err := json.Unmarshal(all[0].Summary, &listed); err != nil || all[0].Document != nil ||
		listed != document.Summary() {
		t.Errorf("the list has %s, and the document %s", all[0].Summary, all[0].Document)
	}
	lines := must(f.PlanSchedule(t.Context(), row.ID))(t)
	if schedule, _, err := plan.ReadSchedule(bytes.NewReader(lines)); err != nil ||
		!cmp.Equal(schedule, document.Schedule) {
		t.Errorf("schedule %s, %v; want that of the document", lines, err)
	}
	if len(must(f.Glideins(t.Context(), api.Filter{All: true}))(t)) != 0 {
		t.Error("making a plan asked for pilots")
	}
	entries := must(f.PlanHistory(t.Context(), row.ID))(t)
	if len(entries) != 1 || entries[0].To != string(corral.PlanReady) || entries[0].Actor != "local" {
		t.Errorf("history %+v", entries)
	}
}

func TestPlanWithAKey(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	first := must(f.CreatePlan(t.Context(), newPlan(), "k"))(t)
	samePlan(t, "same key", must(f.CreatePlan(t.Context(), newPlan(), "k"))(t), first)
	other := newPlan()
	other.Goal.Deadline *= 2
	_, err := f.CreatePlan(t.Context(), other, "k")
	wantKind(t, "same key, other goal", err, corral.KeyReused, "")
	if all := must(f.Plans(t.Context(), api.Filter{}))(t); len(all) != 1 {
		t.Errorf("%d plans, want 1", len(all))
	}
}

// TestObjectiveThatIsLeftOut: the objective follows from the given fields.
func TestObjectiveThatIsLeftOut(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	budget := &cost.Amount{Money: 10_000_000, Unit: cost.CPUHours}
	for _, tc := range []struct{ given, want plan.Goal }{
		{plan.Goal{}, plan.Goal{Objective: plan.Tradeoff, Tradeoff: 0.5}},
		{plan.Goal{Tradeoff: 1}, plan.Goal{Objective: plan.Tradeoff, Tradeoff: 1}},
		{plan.Goal{Budget: budget}, plan.Goal{Objective: plan.Makespan, Budget: budget}},
		{plan.Goal{Objective: plan.Tradeoff}, plan.Goal{Objective: plan.Tradeoff}}, // 0: only the makespan counts
	} {
		in := newPlan()
		in.Goal = tc.given
		document := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t))
		if diff := cmp.Diff(tc.want, document.Goal); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.given, diff)
		}
	}
}

// TestPlanOutOfReach: the plan is stored as INFEASIBLE and suggests a request that is feasible.
func TestPlanOutOfReach(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Goal.Deadline = corral.Seconds(15 * time.Minute)
	row := must(f.CreatePlan(t.Context(), in, ""))(t)
	document := documentOf(t, row)
	if row.State != corral.PlanInfeasible || document.Feasible || document.Nearest == nil {
		t.Fatalf("plan %+v, want INFEASIBLE with the nearest", row)
	}
	if !strings.Contains(row.Reason, "the deadline of 15m0s is shorter than the critical path of 20m0s") {
		t.Errorf("reason %q", row.Reason)
	}
	nulls := strings.ReplaceAll(string(compact(t, row).Document), `"lower_bound_cpus":null`, "")
	if strings.Contains(nulls, "null") {
		t.Errorf("document %s has a list that is null", row.Document)
	}
	_, err := f.ProvisionPlan(t.Context(), row.ID)
	wantKind(t, "provisioning what cannot be", err, corral.Conflict, "plan")
	in.Goal.Deadline = document.Nearest.Makespan
	if row := must(f.CreatePlan(t.Context(), in, ""))(t); row.State != corral.PlanReady {
		t.Errorf("with the deadline of the nearest plan it is %s: %s", row.State, row.Reason)
	}

	in = newPlan()
	in.Goal = plan.Goal{Budget: &cost.Amount{Money: 1000, Unit: cost.CPUHours}}
	if row := must(f.CreatePlan(t.Context(), in, ""))(t); row.State != corral.PlanInfeasible ||
		!strings.Contains(row.Reason, "no plan costs 0.001ch or less") {
		t.Errorf("a budget out of reach is %s: %q", row.State, row.Reason)
	}
}

// TestAPlanForARunThatWouldBeRefused: the plan is refused like the run, and nothing is created.
func TestAPlanForARunThatWouldBeRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	full := t.TempDir()
	if err := os.Mkdir(filepath.Join(full, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for place, next := range map[string]api.NextRun{
		"dir":     {Dir: full},
		"labels":  {Labels: map[string]string{"": "x"}},
		"retries": {Options: corral.RunOptions{Retries: 5000}},
	} {
		in := newPlan()
		in.ForRun = api.ForRun{Auto: true, NextRun: &next}
		_, err := f.CreatePlan(t.Context(), in, "")
		wantKind(t, place, err, corral.Invalid, place)
	}
	if all := must(f.Plans(t.Context(), api.Filter{All: true}))(t); len(all) != 0 {
		t.Errorf("%d plans were created", len(all))
	}
	in := newPlan()
	in.ForRun = api.ForRun{Auto: true, NextRun: &api.NextRun{Dir: filepath.Join(full, "new")}}
	if row := must(f.CreatePlan(t.Context(), in, ""))(t); row.State != corral.PlanReady {
		t.Errorf("a plan for a run that may be is %s: %s", row.State, row.Reason)
	}
	if left, err := os.ReadDir(full); err != nil || len(left) != 1 {
		t.Errorf("%d entries in the directory, %v; want the one before", len(left), err)
	}
}

// TestProvision: each pilot becomes a glidein with its start time, and repetitions add none. Release releases them.
func TestProvision(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	pilots := documentOf(t, row).Pilots
	_, err := f.Plan(t.Context(), row.ID+1)
	wantKind(t, "a plan that is not there", err, corral.NotFound, "id")

	other := f.glidein(t)
	first := must(f.ProvisionPlan(t.Context(), row.ID))(t)
	samePlan(t, "a repetition", must(f.ProvisionPlan(t.Context(), row.ID))(t), first)
	if first.State != corral.PlanProvisioned || first.BeganAt.IsZero() {
		t.Errorf("plan is %s since %v", first.State, first.BeganAt)
	}
	mine := api.Filter{Labels: map[string]string{"plan": fmt.Sprint(row.ID)}}
	glideins := must(f.Glideins(t.Context(), mine))(t)
	if len(glideins) != len(pilots) || len(glideins) < 2 {
		t.Fatalf("%d glideins for %d pilots, of which one comes later", len(glideins), len(pilots))
	}
	for i, g := range glideins {
		q, due := pilots[i], time.Time{}
		if q.Submit > 0 {
			due = first.BeganAt.Add(time.Duration(q.Submit))
		}
		if g.Hosts != q.Hosts || g.CPUs != q.CPUs || g.Walltime != q.Walltime || g.SiteName != "local" ||
			g.Owner != "local" || !g.NotBefore.Equal(due) || g.Labels["pilot"] != fmt.Sprint(i) {
			t.Errorf("glidein %+v of pilot %+v, due at %v", g, q, due)
		}
	}
	if glideins[len(glideins)-1].NotBefore.IsZero() {
		t.Errorf("pilots %+v all come at once, want one only when the workflow is wide", pilots)
	}

	_, err = f.RemovePlan(t.Context(), row.ID)
	wantKind(t, "removing what holds pilots", err, corral.Conflict, "plan")
	released := must(f.ReleasePlan(t.Context(), row.ID))(t)
	samePlan(t, "a repeated release", must(f.ReleasePlan(t.Context(), row.ID))(t), released)
	if released.State != corral.PlanReleased {
		t.Errorf("plan is %s, want RELEASED", released.State)
	}
	for _, g := range must(f.Glideins(t.Context(), mine))(t) {
		if g.Asked != corral.AskDrain && !g.State.Terminal() {
			t.Errorf("glidein %d is %s, asked %q, after the release", g.ID, g.State, g.Asked)
		}
	}
	if g := must(f.Glidein(t.Context(), other.ID))(t); g.Asked != corral.AskNothing {
		t.Errorf("glidein %d is of no plan, and was asked to %s", g.ID, g.Asked)
	}
	_, err = f.ProvisionPlan(t.Context(), row.ID)
	wantKind(t, "provisioning what was released", err, corral.Conflict, "plan")

	removed := must(f.RemovePlan(t.Context(), row.ID))(t)
	samePlan(t, "a repeated removal", must(f.RemovePlan(t.Context(), row.ID))(t), removed)
	if all := must(f.Plans(t.Context(), api.Filter{}))(t); removed.State != corral.PlanDeleted || len(all) != 0 {
		t.Errorf("plan is %s, listed are %+v", removed.State, all)
	}
	if all := must(f.Plans(t.Context(), api.Filter{All: true}))(t); len(all) != 1 {
		t.Errorf("%d plans with those that are DELETED, want 1", len(all))
	}
}

// TestPlansThatAreApplied: a plan and its pilots are created together, once for each key.
func TestPlansThatAreApplied(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Apply = true
	row := must(f.CreatePlan(t.Context(), in, "once"))(t)
	samePlan(t, "a repetition with the key", must(f.CreatePlan(t.Context(), in, "once"))(t), row)
	samePlan(t, "a repetition by id", must(f.ProvisionPlan(t.Context(), row.ID))(t), row)
	all := must(f.Glideins(t.Context(), api.Filter{}))(t)
	if pilots := documentOf(t, row).Pilots; row.State != corral.PlanProvisioned || len(all) != len(pilots) {
		t.Errorf("plan is %s, with %d glideins for %d pilots", row.State, len(all), len(pilots))
	}

	in.Goal.Deadline = corral.Seconds(time.Second)
	if row := must(f.CreatePlan(t.Context(), in, ""))(t); row.State != corral.PlanInfeasible {
		t.Errorf("a plan that is out of reach is %s", row.State)
	}
	if n := len(must(f.Glideins(t.Context(), api.Filter{}))(t)); n != len(all) {
		t.Errorf("%d glideins, want %d", n, len(all))
	}
	in.Goal.Deadline, in.DryRun = 0, true
	_, err := f.CreatePlan(t.Context(), in, "")
	wantKind(t, "a dry run", err, corral.Invalid, "apply")
}

// TestRefusedPilotsLeaveNoPlan: if the pilots of a plan that is applied at once are refused, the plan is not stored.
func TestRefusedPilotsLeaveNoPlan(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	must(f.ScaleCluster(t.Context(), "default", newScale()))(t)
	in := newPlan()
	in.Apply = true
	_, err := f.CreatePlan(t.Context(), in, "")
	wantKind(t, "on a cluster that is scaled", err, corral.Conflict, "cluster")
	if all := must(f.Plans(t.Context(), api.Filter{All: true}))(t); len(all) != 0 {
		t.Errorf("%d plans were created", len(all))
	}
}

// TestDeadlinesThatAreInstants: a plan counts from when it is made, a little early, and keeps the instant.
func TestDeadlinesThatAreInstants(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Goal = plan.Goal{DeadlineAt: time.Now().Add(10 * time.Hour).UTC()}
	goal := documentOf(t, must(f.CreatePlan(t.Context(), in, ""))(t)).Goal
	if d := time.Duration(goal.Deadline); !goal.DeadlineAt.Equal(in.Goal.DeadlineAt) || goal.Objective != plan.Cost ||
		d > 10*time.Hour-time.Minute || d < 9*time.Hour {
		t.Errorf("the goal is %+v", goal)
	}
	for says, edit := range map[string]func(*plan.Goal){
		"has passed":                     func(g *plan.Goal) { g.DeadlineAt = time.Now().Add(-time.Second) },
		"cannot be used with deadline_s": func(g *plan.Goal) { g.Deadline = corral.Seconds(time.Hour) },
		"is more than 8784h0m0s ahead":   func(g *plan.Goal) { g.DeadlineAt = g.DeadlineAt.AddDate(2, 0, 0) },
	} {
		wrong := in
		edit(&wrong.Goal)
		_, err := f.CreatePlan(t.Context(), wrong, "")
		wantKind(t, says, err, corral.Invalid, "deadline_at")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

// TestProvisionIsWhole: if one glidein is impossible, none is created, and the plan stays READY. A PROVISIONED plan
// stays PROVISIONED, regardless of changes at its site.
func TestProvisionIsWhole(t *testing.T) {
	t.Parallel()
	f := start(t)
	site := f.readySite(t)
	row := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	done := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	must(f.ProvisionPlan(t.Context(), done.ID))(t)
	before := len(must(f.Glideins(t.Context(), api.Filter{All: true}))(t))
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.MoveSite(site.ID, corral.SiteRemove, "")
		return err
	})
	if _, err := f.ProvisionPlan(t.Context(), row.ID); corral.KindOf(err) != corral.Conflict {
		t.Errorf("at a site that is being removed: %v, want a conflict", err)
	}
	if got := must(f.Plan(t.Context(), row.ID))(t); got.State != corral.PlanReady {
		t.Errorf("plan is %s, want READY", got.State)
	}
	if got := must(f.ProvisionPlan(t.Context(), done.ID))(t); got.State != corral.PlanProvisioned {
		t.Errorf("the other is %s, want PROVISIONED", got.State)
	}
	if n := len(must(f.Glideins(t.Context(), api.Filter{All: true}))(t)); n != before {
		t.Errorf("%d glideins, want %d", n, before)
	}
	_, err := f.CreatePlan(t.Context(), newPlan(), "")
	wantKind(t, "without a site", err, corral.Unsatisfiable, "sites")
}

func TestBadPlans(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	dollars, nothing := &cost.Amount{Money: 1_000_000, Unit: "USD"}, &cost.Amount{Unit: cost.CPUHours}
	for _, tc := range []struct {
		name  string
		edit  func(*api.NewPlan)
		kind  corral.Kind
		place string
	}{
		{"unknown cluster", func(p *api.NewPlan) { p.Cluster = "nowhere" }, corral.NotFound, "cluster"},
		{"unknown site", func(p *api.NewPlan) { p.Sites = []string{"nowhere"} }, corral.NotFound, "site"},
		{"no workflow", func(p *api.NewPlan) { p.Workflow = json.RawMessage(`{}`) }, corral.Invalid, "fan.json:1"},
		{"no estimate", func(p *api.NewPlan) { p.Workflow = fan(1, 0) }, corral.Unsatisfiable, "task t0"},
		{"deadline", func(p *api.NewPlan) { p.Goal.Deadline = corral.Seconds(-time.Second) }, corral.Invalid, "deadline_s"},
		{"objective", func(p *api.NewPlan) { p.Goal.Objective = "joy" }, corral.Invalid, "objective"},
		{"cpus", func(p *api.NewPlan) { p.Goal = plan.Goal{Objective: plan.CPUs} }, corral.Invalid, "objective"},
		{"tradeoff", func(p *api.NewPlan) { p.Goal.Tradeoff = 1.5 }, corral.Invalid, "tradeoff"},
		{"confidence", func(p *api.NewPlan) { p.Goal.Confidence = 1 }, corral.Invalid, "confidence"},
		{"error", func(p *api.NewPlan) { p.Error = "normal:1" }, corral.Invalid, "error"},
		{"other unit", func(p *api.NewPlan) { p.Goal.Budget = dollars }, corral.Invalid, "budget"},
		{"empty", func(p *api.NewPlan) { p.Goal.Budget = nothing }, corral.Invalid, "budget"},
		{"no unit", func(p *api.NewPlan) { p.Goal.Budget = &cost.Amount{Money: 1} }, corral.Invalid, "budget"},
		{"default runtime", func(p *api.NewPlan) { p.DefaultRuntime = corral.Seconds(-time.Second) }, corral.Invalid,
			"default_runtime_s"},
		{"host cpus", func(p *api.NewPlan) { p.HostCPUs = -1 }, corral.Invalid, "host_cpus"},
		{"seed", func(p *api.NewPlan) { p.Seed = 1 << 60 }, corral.Invalid, "seed"},
	} {
		in := newPlan()
		tc.edit(&in)
		_, err := f.CreatePlan(t.Context(), in, "")
		wantKind(t, tc.name, err, tc.kind, tc.place)
	}
	for body, place := range map[string]string{
		`{}`: "workflow",
		`{"workflow": {}, "goal": {"deadline": 5}}`:                                   "deadline",
		`{"workflow": {}, "goal": {"deadline_s": NaN}}`:                               "body",
		`{"workflow": {}, "goal": {"tradeoff": "half"}}`:                              "tradeoff",
		`{"workflow": {}, "goal": {"tradeoff": 1e300}}`:                               "tradeoff",
		`{"workflow": {}, "goal": {"budget": {"amount": 0.0000001, "unit": "ch"}}}`:   "amount",
		`{"workflow": {}, "goal": {"budget": {"amount": 1, "unit": "` + long + `"}}}`: "budget",
		`{"workflow": {}, "seed": 1.5}`:                                               "seed",
	} {
		status, p, _ := f.send(t, http.MethodPost, "/v1/plans", body)
		if status != http.StatusBadRequest || p.Place != place || len(p.Detail) > 1000 {
			t.Errorf("%.100s: %d %+v, want 400 at %s", body, status, p, place)
		}
	}
	if all := must(f.Plans(t.Context(), api.Filter{All: true}))(t); len(all) != 0 {
		t.Errorf("%d plans were created", len(all))
	}
}

// long exceeds the text that a message should repeat.
var long = strings.Repeat("U", 5000)

// Revisions of a plan are returned in pages, and the client reads all of them.
func TestRevisionsComeInPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	p := must(f.CreatePlan(t.Context(), newPlan(), ""))(t)
	must(f.ProvisionPlan(t.Context(), p.ID))(t)
	f.write(t, func(tx *store.Tx) error {
		for range api.MaxPage + 5 {
			if _, err := tx.RevisePlan(p.ID, corral.RevisionText{Reasons: []string{"behind"}}); err != nil {
				return err
			}
		}
		return nil
	})
	all := must(f.PlanRevisions(t.Context(), p.ID))(t)
	if n := len(all); n != api.MaxPage+5 || all[n-1].Number != n {
		t.Errorf("%d revisions", n)
	}
	target := fmt.Sprintf("/v1/plans/%d/revisions", p.ID)
	for query, want := range map[string]string{
		"?limit=2":                               "[1 2] 2",
		"?limit=2&after=2":                       "[3 4] 4",
		fmt.Sprintf("?after=%d", api.MaxPage+4):  "[1005] ",
		fmt.Sprintf("?after=%d", api.MaxPage+99): "[] ",
	} {
		var page api.List[corral.Revision]
		_, _, text := f.send(t, http.MethodGet, target+query, "")
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Errorf("%s: %v", query, err)
		}
		numbers := []int{}
		for _, r := range page.Items {
			numbers = append(numbers, r.Number)
		}
		if got := fmt.Sprint(numbers, " ", page.Next); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if status, p, _ := f.send(t, http.MethodGet, target+"?limit=1001", ""); status != http.StatusBadRequest {
		t.Errorf("more than a page: %d %+v", status, p)
	}
}

// TestPlanOfARun: the rest of a run is planned with the runtimes of its finished tasks; for a failed run, the tasks
// that a resumption would run again.
func TestPlanOfARun(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	r := must(f.CreateRun(t.Context(), api.NewRun{Workflow: fan(2, 600), WorkflowName: "fan.json"}, ""))(t)
	of := func() plan.Plan {
		t.Helper()
		return documentOf(t, must(f.CreatePlan(t.Context(), api.NewPlan{Run: r.ID}, ""))(t))
	}
	if whole := of(); len(whole.Schedule) != 3 || whole.Workflow != "fan" || whole.Assumed.Run != r.ID {
		t.Errorf("of a run that has begun %d tasks are planned, want all 3 of run %d", len(whole.Schedule), r.ID)
	}
	f.bench.end(t, <-f.bench.submitted, execution.Done)
	last := <-f.bench.submitted
	part := of()
	if len(part.Schedule) != 2 {
		t.Errorf("%d tasks are planned, want the 2 that are left", len(part.Schedule))
	}
	want := fmt.Sprintf("it is for the rest of run %d: 2 of 3 tasks", r.ID)
	if !slices.Contains(part.Reasons, want) {
		t.Errorf("reasons %q, want %q", part.Reasons, want)
	}
	if took := part.Schedule[0].End - part.Schedule[0].Start; took >= corral.Seconds(10*time.Minute) {
		t.Errorf("a task takes %s, as if the first had not been much faster than estimated", took)
	}
	f.bench.end(t, last, execution.Failed)
	f.bench.end(t, <-f.bench.submitted, execution.Done)
	r = must(f.WaitRun(t.Context(), r.ID, time.Minute))(t)
	if failed := of(); r.State != corral.RunFailed || len(failed.Schedule) != 1 {
		t.Errorf("of a run that is %s %d tasks are planned, want the one that failed", r.State, len(failed.Schedule))
	}
	done := runFan(t, f)
	_, err := f.CreatePlan(t.Context(), api.NewPlan{Run: done.ID}, "")
	wantKind(t, "a run of which nothing is left", err, corral.Conflict, "run_id")
	_, err = f.CreatePlan(t.Context(), api.NewPlan{Run: 99}, "")
	wantKind(t, "a run that is not there", err, corral.NotFound, "run_id")
	_, err = f.CreatePlan(t.Context(), api.NewPlan{Run: r.ID, Cluster: "other"}, "")
	wantKind(t, "a cluster that is not there", err, corral.NotFound, "cluster")
	_, err = f.CreatePlan(t.Context(), api.NewPlan{}, "")
	wantKind(t, "neither a workflow nor a run", err, corral.Invalid, "workflow")
}
