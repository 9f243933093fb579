//go:build soak

package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
)

// TestPlanOfManyTasks: its schedule is stored apart until the plan is removed. A dry run stores none.
func TestPlanOfManyTasks(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newPlan()
	in.Workflow, in.Goal = fan(plan.MostWithin, 1), plan.Goal{Objective: plan.Cost}
	for _, dryRun := range []bool{true, false} {
		in.DryRun = dryRun
		row := must(f.CreatePlan(t.Context(), in, ""))(t)
		document := documentOf(t, row)
		if len(row.Document) > 1<<16 || document.Schedule != nil || document.Apart == nil ||
			document.Apart.Tasks != plan.MostWithin+1 {
			t.Fatalf("document of %d bytes, %d placements within it, apart %+v", len(row.Document),
				len(document.Schedule), document.Apart)
		}
		lines, err := f.PlanSchedule(t.Context(), row.ID)
		if dryRun {
			wantKind(t, "the schedule of a dry run", err, corral.NotFound, "id")
			continue
		}
		if err := errors.Join(err, document.Attach(bytes.NewReader(lines))); err != nil {
			t.Error(err)
		}
		must(f.RemovePlan(t.Context(), row.ID))(t)
		_, err = f.PlanSchedule(t.Context(), row.ID)
		wantKind(t, "the schedule of a plan that was removed", err, corral.NotFound, "plan")
		_, err = f.CreateRun(t.Context(), api.NewRun{Workflow: in.Workflow, WorkflowName: "fan.json",
			Labels: map[string]string{"plan": fmt.Sprint(row.ID)}}, "")
		wantKind(t, "a run for a plan that was removed", err, corral.Conflict, "labels")
	}
	in.Goal.Deadline, in.DryRun = corral.Seconds(time.Second), false
	row := must(f.CreatePlan(t.Context(), in, ""))(t)
	near := documentOf(t, row).Nearest
	if near == nil || near.Apart == nil {
		t.Fatalf("document %.1000s, want the nearest plan with its schedule apart", row.Document)
	}
	if err := near.Attach(bytes.NewReader(must(f.PlanSchedule(t.Context(), row.ID))(t))); err != nil {
		t.Error(err)
	}
}
