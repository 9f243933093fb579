package provision_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// took returns a profile of tasks that each took the given number of seconds and MiB, with two tasks of the kind in
// each run.
func took(t *testing.T, runs []string, kind string, seconds, mib float64) *profile.Profile {
	t.Helper()
	var samples []profile.Sample
	for _, run := range runs {
		for _, id := range []string{"1", "2"} {
			s := profile.Sample{Subject: profile.Subject{Transformation: kind, Level: profile.AllLevels}, Run: run, ID: id}
			s.Values.Set(profile.Runtime, seconds)
			s.Values.Set(profile.Memory, mib*(1<<20))
			samples = append(samples, s)
		}
	}
	p, err := profile.Of(samples)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// diamond returns a workflow with one task of each of four kinds; three of the tasks have an estimate in the file.
func diamond(t *testing.T) *workflow.Workflow {
	t.Helper()
	w := &workflow.Workflow{Name: "diamond"}
	b := workflow.NewBuilder(w, workflow.Options{})
	for _, task := range []workflow.Task{
		{ID: "a", Name: "split", Estimate: 10 * time.Second, Resources: corral.Resources{MemoryMiB: 100}},
		{ID: "b", Name: "left", Estimate: 10 * time.Second},
		{ID: "c", Name: "right", Estimate: 10 * time.Second},
		{ID: "d", Name: "join"},
	} {
		if err := b.Add(task, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestExperience: the requested profile is used first, then the workflow's own estimates, then earlier runs, then the
// default runtime; and the plan states the source of each estimate.
func TestExperience(t *testing.T) {
	t.Parallel()
	earlier := took(t, []string{"r1", "r2", "r3"}, "split", 30, 400)
	if err := earlier.Merge(took(t, []string{"s1", "s2"}, "join", 5, 10)); err != nil {
		t.Fatal(err)
	}
	given := took(t, []string{"g"}, "left", 20, 64)
	type seconds [4]float64
	for _, tc := range []struct {
		name    string
		x       provision.Experience
		want    seconds
		memory  [4]int
		reasons []string
	}{
		{"what the workflow says", provision.Experience{Fallback: time.Second}, seconds{10, 10, 10, 1},
			[4]int{100, 0, 0, 0}, []string{"runtimes of 3 of 4 kinds of tasks from the workflow; 1 from --default-runtime"}},
		{"earlier runs, where it says nothing", provision.Experience{Earlier: earlier, Fallback: time.Second},
			seconds{10, 10, 10, 5}, [4]int{100, 0, 0, 10}, []string{
				"runtimes of 3 of 4 kinds of tasks from the workflow; 1 from 5 earlier runs",
				"by 5 earlier runs, tasks take 3 × what the workflow says: --learn plans with that"}},
		{"earlier runs first", provision.Experience{Earlier: earlier, Learn: true}, seconds{30, 10, 10, 5},
			[4]int{400, 0, 0, 10}, []string{
				"runtimes of 2 of 4 kinds of tasks from 5 earlier runs; 2 from the workflow",
				"by 5 earlier runs, tasks take 3 × what the workflow says: the plan uses that"}},
		{"a profile before all", provision.Experience{Given: given, Earlier: earlier, Learn: true},
			seconds{30, 20, 10, 5}, [4]int{400, 64, 0, 10}, []string{
				"runtimes of 1 of 4 kinds of tasks from the profile; 2 from 5 earlier runs; 1 from the workflow",
				"by 5 earlier runs, tasks take 3 × what the workflow says: the plan uses that"}},
	} {
		work, reasons, err := provision.Work(diamond(t), tc.x)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		var got seconds
		var memory [4]int
		for i, task := range work.Tasks {
			got[i], memory[i] = task.Runtime.Seconds(), task.Needs.MemoryMiB
		}
		if got != tc.want || memory != tc.memory {
			t.Errorf("%s: %v s, %v MiB, want %v, %v", tc.name, got, memory, tc.want, tc.memory)
		}
		if diff := cmp.Diff(tc.reasons, reasons); diff != "" {
			t.Errorf("%s: reasons (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestNoReasonsWithoutNeed: a workflow with complete estimates that earlier runs confirm needs no explanation.
func TestNoReasonsWithoutNeed(t *testing.T) {
	t.Parallel()
	w := diamond(t)
	w.Tasks[3].Estimate = time.Second
	_, reasons, err := provision.Work(w, provision.Experience{Earlier: took(t, []string{"r"}, "left", 11, 1)})
	if err != nil || len(reasons) != 0 {
		t.Errorf("reasons %q, %v, want none", reasons, err)
	}
}

// TestProfileOfOtherTasks: a requested profile that contains none of the tasks is an error.
func TestProfileOfOtherTasks(t *testing.T) {
	t.Parallel()
	_, _, err := provision.Work(diamond(t), provision.Experience{Given: took(t, []string{"g"}, "other", 1, 1)})
	if p := api.ProblemOf(err); err == nil || p.Kind != corral.Invalid || p.Place != "profiles" {
		t.Errorf("%v, want an Invalid error about profiles", err)
	}
}
