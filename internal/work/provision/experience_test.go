package provision_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
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

// TestExperience: the requested profile is used first, then the measurements of earlier runs, then the workflow's own
// estimates, then the default runtime or an assumption; and the plan states the source of each estimate.
func TestExperience(t *testing.T) {
	t.Parallel()
	earlier := took(t, []string{"r1", "r2", "r3"}, "split", 30, 400)
	if err := earlier.Merge(took(t, []string{"s1", "s2"}, "join", 5, 10)); err != nil {
		t.Fatal(err)
	}
	runs := []corral.RunID{3, 5}
	given := took(t, []string{"g"}, "left", 20, 64)
	type seconds [4]float64
	for _, tc := range []struct {
		name      string
		x         provision.Experience
		want      seconds
		memory    [4]int
		estimates string
	}{
		{"the file", provision.Experience{Fallback: time.Second}, seconds{10, 10, 10, 1}, [4]int{100, 0, 0, 0},
			"3 from the file, 1 of 1s by default"},
		{"an assumption", provision.Experience{Guess: time.Minute}, seconds{10, 10, 10, 60}, [4]int{100, 0, 0, 0},
			"3 from the file, 1 assumed to be 1m0s until the run has measured the kind"},
		{"a default in place of an assumption", provision.Experience{Fallback: time.Second, Guess: time.Minute},
			seconds{10, 10, 10, 1}, [4]int{100, 0, 0, 0}, "3 from the file, 1 of 1s by default"},
		{"earlier runs before the file", provision.Experience{Earlier: earlier, Runs: runs}, seconds{30, 10, 10, 5},
			[4]int{400, 0, 0, 10}, "2 measured here (runs 3, 5), 2 from the file"},
		{"the rest of a run", provision.Experience{Fallback: time.Second, Rest: func(i int) bool { return i > 1 }},
			seconds{10, 10, 10, 1}, [4]int{100, 0, 0, 0}, "1 from the file, 1 of 1s by default"},
		{"the rest of a run needs estimates", provision.Experience{Rest: func(i int) bool { return i < 3 }},
			seconds{10, 10, 10, 0}, [4]int{100, 0, 0, 0}, "3 from the file"},
		{"a profile before all", provision.Experience{Given: given, Earlier: earlier, Runs: runs[:1]},
			seconds{30, 20, 10, 5}, [4]int{400, 64, 0, 10},
			"1 from the profile, 2 measured here (run 3), 1 from the file"},
	} {
		work, basis, err := provision.Work(diamond(t), tc.x)
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
		if said := plan.Sources(basis.Estimates); said != tc.estimates {
			t.Errorf("%s: estimates %s, want %s", tc.name, said, tc.estimates)
		}
		want := []string{"in " + plan.RunList(tc.x.Runs) + ", tasks took 3 × the file's estimates, which are not used for them"}
		if tc.x.Earlier == nil {
			want = nil
		}
		if diff := cmp.Diff(want, basis.Remarks); diff != "" {
			t.Errorf("%s: remarks (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestAssumedKinds: a plan names the kinds of tasks whose runtimes are assumed, because its revisions replace these.
func TestAssumedKinds(t *testing.T) {
	t.Parallel()
	_, basis, err := provision.Work(diamond(t), provision.Experience{Guess: time.Minute})
	if got := plan.Guesses(basis.Estimates); err != nil || len(got) != 1 || !got["join"] {
		t.Errorf("%v, %v, want join", got, err)
	}
}

// TestLearnedErrors: the errors of a kind with 20 measured runtimes are learned; those of other kinds are not.
func TestLearnedErrors(t *testing.T) {
	t.Parallel()
	var samples []profile.Sample
	add := func(kind string, seconds ...float64) {
		for i, x := range seconds {
			s := profile.Sample{Subject: profile.Subject{Transformation: kind, Level: profile.AllLevels}, Run: "r",
				ID: fmt.Sprint(kind, i)}
			s.Values.Set(profile.Runtime, x)
			samples = append(samples, s)
		}
	}
	for range 11 {
		add("split", 5, 15)
	}
	for i := range samples {
		samples[i].ID = fmt.Sprint("split", i)
	}
	add("left", 5, 15)
	p, err := profile.Of(samples)
	if err != nil {
		t.Fatal(err)
	}
	w := diamond(t)
	w.Tasks[3].Estimate = time.Second
	_, basis, err := provision.Work(w, provision.Experience{Earlier: p, Runs: []corral.RunID{1}})
	if err != nil || len(basis.Errors) != 1 || basis.Whole {
		t.Fatalf("%+v, %v, want the errors of split only", basis, err)
	}
	if low, high := basis.Errors.Factor("split", 0), basis.Errors.Factor("split", 1); low != 0.5 || high != 1.5 {
		t.Errorf("split takes %g to %g × its estimate, want 0.5 to 1.5", low, high)
	}
	if law := basis.Errors.Law("lognormal:0.2"); law != "learned from 22 runtimes of 1 kind; lognormal:0.2 for the rest" {
		t.Error(law)
	}
}

// TestNoRemarksWithoutNeed: earlier runs that confirm the workflow's estimates need no remark.
func TestNoRemarksWithoutNeed(t *testing.T) {
	t.Parallel()
	w := diamond(t)
	w.Tasks[3].Estimate = time.Second
	_, basis, err := provision.Work(w, provision.Experience{Earlier: took(t, []string{"r"}, "left", 11, 1)})
	if err != nil || len(basis.Remarks) != 0 {
		t.Errorf("remarks %q, %v, want none", basis.Remarks, err)
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
