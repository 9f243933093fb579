package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	planning "github.com/corral-pilot/corral/plan"
	money "github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow"
)

// executed is an outcome with a plan of 10 s and 20 CPU-seconds, a deadline of 13 s and a budget of 22 CPU-seconds.
func executed(took, held time.Duration) outcome {
	return outcome{name: "w", tasks: 3, seed: 1, took: took, held: held,
		predicted: planning.Point{Makespan: corral.Seconds(10 * time.Second), CoreHours: 20. / 3600, PeakCPUs: 2},
		goal: planning.Goal{Deadline: corral.Seconds(13 * time.Second),
			Budget: &money.Amount{Money: 6112, Unit: money.CPUHours}}}
}

// TestVerdicts: a miss counts as announced only if it was announced before the deadline and not withdrawn.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	began := time.Now()
	news := func(what string, after time.Duration) corral.Revision {
		return corral.Revision{At: began.Add(after), RevisionText: corral.RevisionText{News: what}}
	}
	for _, tc := range []struct {
		name      string
		took      time.Duration
		held      time.Duration
		revisions []corral.Revision
		kept      bool
		verdict   string
	}{
		{"as predicted", 10 * time.Second, 20 * time.Second, nil, true, "met"},
		{"dear", 10 * time.Second, 23 * time.Second, nil, false, "met"},
		{"late", 14 * time.Second, 21 * time.Second, nil, true, "missed, not said before"},
		{"late and said", 14 * time.Second, 21 * time.Second, []corral.Revision{news("late", 9*time.Second)}, true,
			"missed, said 4.0 s before"},
		{"said too late", 14 * time.Second, 21 * time.Second, []corral.Revision{news("late", 13*time.Second)}, true,
			"missed, not said before"},
		{"taken back", 14 * time.Second, 21 * time.Second,
			[]corral.Revision{news("late", 5*time.Second), news("in time", 6*time.Second)}, true,
			"missed, not said before"},
	} {
		o := executed(tc.took, tc.held)
		for _, r := range tc.revisions {
			o.revise(r, began)
		}
		if o.kept() != tc.kept || o.verdict() != tc.verdict {
			t.Errorf("%s: budget kept: %v, %q; want %v, %q", tc.name, o.kept(), o.verdict(), tc.kept, tc.verdict)
		}
	}
}

// TestReportOfPlans counts the required results; an unfinished workflow is neither near nor in time.
func TestReportOfPlans(t *testing.T) {
	t.Parallel()
	exact := executed(10500*time.Millisecond, 20*time.Second)
	exact.seed, exact.goal = 0, planning.Goal{}
	undone := executed(30*time.Second, 22*time.Second)
	undone.trouble = "2 of 3 tasks done"
	text := plansReport([]outcome{exact, executed(11*time.Second, 20*time.Second), undone})
	for _, want := range []string{
		"| w        | 3     | 2    | 0 ", "| +5.0 ", "as estimated: 1 of 1.", "budget was kept: 2 of 2",
		"slack was met: 1 of 2", "announced before: 0 of 1", "| not done |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// TestSleepingTasks: a task's error depends on its id and the seed, stays within its bounds, and changes no estimate.
func TestSleepingTasks(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{Name: "w"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	for _, id := range []string{"a", "b", "c"} {
		task := workflow.Task{ID: id, Argv: []string{"/bin/true"}, Inputs: []string{"in"}}
		task.Runtime = 100 * time.Second
		if err := b.Add(task, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Edge("a", "b", workflow.Place{})
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	scale := fastest(wf, time.Second, 500*time.Millisecond)
	if want := 0.004; scale != want { // a critical path of 200 s takes 0.8 s
		t.Fatalf("scale %g, want %g", scale, want)
	}
	exact, err := asleep{scale: scale}.document(wf)
	if err != nil || !json.Valid(exact) || strings.Count(string(exact), `"0.4000"`) != 3 ||
		strings.Count(string(exact), `"name":"true"`) != 3 ||
		strings.Contains(string(exact), `"in"`) {
		t.Errorf("%v\n%s\nwant three tasks of 0.4 s without files", err, exact)
	}
	one, _ := asleep{scale: scale, err: 0.3, seed: 1}.document(wf)
	again, _ := asleep{scale: scale, err: 0.3, seed: 1}.document(wf)
	other, _ := asleep{scale: scale, err: 0.3, seed: 2}.document(wf)
	if !slices.Equal(one, again) || slices.Equal(one, other) || slices.Equal(one, exact) {
		t.Error("errors do not depend on the seed alone")
	}
	for seed := range uint64(1000) {
		if f := (asleep{err: 0.3, seed: seed}).factor("a"); f < 0.7 || f > 1.3 {
			t.Errorf("seed %d: factor %g", seed, f)
		}
	}
}
