package report_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/report"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(minutes float64) time.Time {
	return began.Add(time.Duration(minutes * float64(time.Minute)))
}

func minutes(n float64) corral.Seconds { return corral.Seconds(n * float64(time.Minute)) }

// facts returns the data of a plan for three tasks whose run is over; two of the tasks took longer than planned.
func facts(t *testing.T, workflow string) report.Facts {
	t.Helper()
	document, err := json.Marshal(plan.Plan{Workflow: workflow, Feasible: true,
		Pilots: []plan.Pilot{{Site: workflow, Shape: corral.Shape{Hosts: 1, CPUs: 2}, End: minutes(20)}},
		Point: plan.Point{Makespan: minutes(20), CoreHours: 2. / 3,
			Cost: cost.Amount{Money: 666_667, Unit: cost.CPUHours}, PeakCPUs: 2},
		Reasons: []string{"because of " + workflow},
		Schedule: []plan.Placement{
			{ID: "a", Kind: workflow, CPUs: 2, End: minutes(10)},
			{ID: "b", Kind: "short", CPUs: 1, Start: minutes(10), End: minutes(15)},
			{ID: "c", Kind: "short", CPUs: 1, Start: minutes(15), End: minutes(20)},
			{ID: "d", Kind: "short", CPUs: 1, Start: minutes(15), End: minutes(20)}}})
	if err != nil {
		t.Fatal(err)
	}
	run := corral.Run{ID: 7, State: corral.RunFailed, EndedAt: after(25)}
	attempt := func(from, to float64) corral.Job {
		return corral.Job{State: corral.JobEnded, StartedAt: after(from), EndedAt: after(to)}
	}
	task := func(id string, from, to float64) api.TaskStatus {
		return api.TaskStatus{ID: id, State: corral.TaskDone, StartedAt: after(from), EndedAt: after(to)}
	}
	return report.Facts{
		Plan: corral.Plan{ID: 3, State: corral.PlanReleased, Document: document, BeganAt: began},
		Run:  &run,
		Glideins: []corral.Glidein{
			{Shape: corral.Shape{Hosts: 1, CPUs: 2}, Attempts: []corral.Job{attempt(0, 10), attempt(12, 25)}},
			{
				Shape:    corral.Shape{Hosts: 3, CPUs: 1},
				Attempts: []corral.Job{{State: corral.JobRunning, StartedAt: after(20)}, {}}}},
		Tasks: []api.TaskStatus{task("a", 0, 8), task("b", 12, 22), task("c", 20, 25),
			{ID: "d", State: corral.TaskFailed, StartedAt: after(20), EndedAt: after(21)}},
		Ledgers: []api.Ledger{{Statement: cost.Statement{Unit: cost.CPUHours, Plans: []cost.Line{
			{Plan: 2, Spending: cost.Spending{Billed: 9_000_000}},
			{Plan: 3, Spending: cost.Spending{Billed: 1_250_000}}}}}},
		Revisions: []corral.Revision{{Number: 1, At: after(18), RevisionText: corral.RevisionText{Reasons: []string{"late"}}}},
		Now:       after(30),
	}
}

// TestPredictedBesideActual: actual values are summed over attempts, ledgers and completed tasks.
func TestPredictedBesideActual(t *testing.T) {
	t.Parallel()
	r, err := report.Of(facts(t, "w"))
	if err != nil {
		t.Fatal(err)
	}
	want := &report.Actual{Makespan: minutes(25), CoreHours: (2*23 + 3*10) / 60., // the last pilot is held until now
		Cost: &cost.Amount{Money: 1_250_000, Unit: cost.CPUHours}}
	if diff := cmp.Diff(want, r.Actual); diff != "" {
		t.Errorf("actual (-want +got):\n%s", diff)
	}
	longer, shorter := 1.5, 0.8
	kinds := []report.Kind{
		{Name: "w", Tasks: 1, Planned: minutes(10), Took: minutes(8), Ratio: &shorter, Off: minutes(2)},
		{Name: "short", Tasks: 2, Planned: minutes(5), Took: minutes(7.5), Ratio: &longer, Off: minutes(2.5)}}
	if diff := cmp.Diff(kinds, r.Kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestWithoutARunThatIsOver: as long as no run is over, only predictions are shown.
func TestWithoutARunThatIsOver(t *testing.T) {
	t.Parallel()
	running, none := facts(t, "w"), facts(t, "w")
	running.Run.State, none.Run = corral.RunRunning, nil
	for says, f := range map[string]report.Facts{"Run 7 is RUNNING": running, "No run has the label plan=3": none} {
		r, err := report.Of(f)
		if err != nil || r.Actual != nil || r.Kinds != nil {
			t.Fatalf("report %+v, %v, want predictions only", r, err)
		}
		if page := written(t, r); !strings.Contains(page, says) || strings.Contains(page, "actual") {
			t.Errorf("page does not say %q, or tells what happened:\n%s", says, page)
		}
	}
}

// TestNamesAreEscaped: names of workflows, kinds of tasks and sites add no element to the page.
func TestNamesAreEscaped(t *testing.T) {
	t.Parallel()
	const name = `</title></svg><script src=x>alert("1")</script>&`
	r, err := report.Of(facts(t, name))
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, r)
	if strings.Contains(page, "<script") || strings.Count(page, "</svg>") != 1 || strings.Count(page, "</title>") != 1 {
		t.Errorf("the name became markup:\n%s", page)
	}
	if n := strings.Count(page, "&lt;script src=x&gt;"); n < 5 {
		t.Errorf("the name is shown %d times, want it in title, heading, picture, tables and reasons", n)
	}
	for _, outside := range []string{"http://", "https://", "src=\"", "@import", "url("} {
		if strings.Contains(strings.ReplaceAll(page, "http://www.w3.org/", ""), outside) {
			t.Errorf("the page has %s: it must need nothing else", outside)
		}
	}
}

// TestNothingToReport: a plan whose goal is out of reach and which has no nearest plan is a Conflict error.
func TestNothingToReport(t *testing.T) {
	t.Parallel()
	_, err := report.Of(report.Facts{Plan: corral.Plan{Document: []byte("{}")}})
	if corral.KindOf(err) != corral.Conflict {
		t.Errorf("%v, want a Conflict", err)
	}
	near := fmt.Appendf(nil, `{"workflow":"w","nearest":{"feasible":true,"makespan_s":60}}`)
	if r, err := report.Of(report.Facts{Plan: corral.Plan{Document: near}}); err != nil ||
		r.Document.Workflow != "w (nearest plan)" {
		t.Errorf("%+v, %v, want the nearest plan", r, err)
	}
}

func written(t *testing.T, r *report.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
