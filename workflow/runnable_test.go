package workflow_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// runnable returns whether a workflow of a single task, on line 2, can be run.
func runnable(t *testing.T, task workflow.Task) error {
	t.Helper()
	wf := &workflow.Workflow{Name: "w"}
	if _, err := build(wf, workflow.Options{}, add(task, at("w.json", 2))); err != nil {
		t.Fatal(err)
	}
	return wf.Runnable()
}

func TestRunnable(t *testing.T) {
	t.Parallel()
	type task = workflow.Task
	argv, tooMany, x, bad := []string{"true"}, 99999, []string{"x"}, map[string]string{"A=B": "c"}
	in := func(file string) task { return task{Argv: argv, Inputs: []string{file}} }
	out := func(file string) task { return task{Argv: argv, Outputs: []string{file}} }
	for want, task := range map[string]task{
		"": {
			Argv: argv, Inputs: []string{"d/own"}, Outputs: []string{"stdout", "d/x"}, Streams: workflow.Streams{Stdin: "d/own", Stderr: "e"},
		},
		"it has no command (in WfFormat: command.program of its execution task; in DAX: an argument)": {},
		`argument "\x00" contains a zero byte`:                                                        {Argv: []string{"x", "\x00"}},
		`environment variable "A=B" cannot be set`:                                                    {Argv: argv, Env: bad},
		"99999999999 MiB of memory, want at most 1073741824":                                          {Argv: argv, Resources: corral.Resources{MemoryMiB: 99999999999}},
		"-1 gpus, want at most 1024":                                                                  {Argv: argv, Resources: corral.Resources{GPUs: -1}},
		"-1 MiB of disk, want at most 1073741824":                                                     {Argv: argv, Resources: corral.Resources{DiskMiB: -1}},
		"99999 retries, want 0 to 65536":                                                              {Argv: argv, Retries: &tooMany},
		`file "/etc/passwd" is outside the run's directory`:                                           in("/etc/passwd"),
		`file "d/../../x" is outside the run's directory`:                                             out("d/../../x"),
		`file "" is outside the run's directory`:                                                      out(""),
		`file "." is the run's directory itself`:                                                      out("."),
		`file "./x" must be written in its shortest form, "x"`:                                        out("./x"),
		`file "record.json" has the name of the record that a worker writes`:                          out("record.json"),
		`file "x/y/z" is below "x", which is also a file`:                                             {Argv: argv, Inputs: []string{"x/y/z"}, Outputs: x},
		`its stdin "x" is not among its input files`:                                                  {Argv: argv, Streams: workflow.Streams{Stdin: "x"}},
		`its output stream would overwrite its input file "x"`:                                        {Argv: argv, Inputs: x, Streams: workflow.Streams{Stdout: "x"}},
		`its output stream would overwrite its input file "stderr"`:                                   in("stderr"),
		`file "../x" is outside the run's directory`:                                                  {Argv: argv, Streams: workflow.Streams{Stdout: "../x"}},
	} {
		task.ID = "a"
		err := runnable(t, task)
		var e *corral.Error
		switch {
		case want == "":
			if err != nil {
				t.Errorf("%v, want none", err)
			}
		case !errors.As(err, &e) || e.Kind != corral.Invalid || err.Error() != `w.json:2: task "a": `+want:
			t.Errorf("\n got %v\nwant w.json:2: task \"a\": %s", err, want)
		}
	}
	if err := runnable(t, task{ID: "a", Argv: []string{"", "x"}}); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Runnable without a program = %v, want Invalid", err)
	}
}

// TestRunnableRefusesTwoWriters: a warning about a workflow is an error for a run.
func TestRunnableRefusesTwoWriters(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{Name: "w"}
	argv, x := []string{"true"}, []string{"x"}
	warnings, err := build(wf, workflow.Options{}, add(workflow.Task{ID: "a", Argv: argv, Outputs: x}, at("f", 1)),
		add(workflow.Task{ID: "b", Argv: argv, Outputs: x}, at("f", 2)))
	if err != nil {
		t.Fatal(err, warnings)
	}
	const want = `f:2: task "b": file "x" is also written by task "a"`
	if err := wf.Runnable(); corral.KindOf(err) != corral.Invalid || err.Error() != want {
		t.Errorf("Runnable = %v, want %s", err, want)
	}
}

func TestRunnableLooksAtIDs(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"a.1":                    true,
		"...":                    true,
		"a b":                    true,
		strings.Repeat("x", 200): true,
		strings.Repeat("x", 201): false,
		".":                      false,
		"..":                     false,
		"a/b":                    false,
		"a\x00":                  false,
		"a\nb":                   false,
	} {
		err := runnable(t, workflow.Task{ID: id, Argv: []string{"true"}})
		if (err == nil) != ok || err != nil && corral.KindOf(err) != corral.Invalid {
			t.Errorf("Runnable with id %.20q = %v, want ok %v", id, err, ok)
		}
	}
}

func TestRunnableOfWhatNoBuilderMade(t *testing.T) {
	t.Parallel()
	negative := -1
	for _, spoil := range []func(*workflow.Task){
		func(t *workflow.Task) { t.CPUs = 0 },
		func(t *workflow.Task) { t.CPUs = 1 << 20 },
		func(t *workflow.Task) { t.MemoryMiB = -1 },
		func(t *workflow.Task) { t.Retries = &negative },
		func(t *workflow.Task) { t.Timeout = -time.Second },
		func(t *workflow.Task) { t.Estimate = -time.Second },
		func(t *workflow.Task) { t.ID = "" },
	} {
		wf := &workflow.Workflow{Tasks: []workflow.Task{{ID: "a", Argv: []string{"true"}, Resources: corral.Resources{CPUs: 1}}}}
		spoil(&wf.Tasks[0])
		if err := wf.Runnable(); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%+v: Runnable = %v, want Invalid", wf.Tasks[0], err)
		}
	}
	made := &workflow.Workflow{Name: "m", Tasks: []workflow.Task{{ID: "a", Resources: corral.Resources{CPUs: 1}}}}
	want := `workflow m: task "a": it has no command (in WfFormat: command.program of its execution task; in DAX: an argument)`
	if err := made.Runnable(); err == nil || err.Error() != want {
		t.Errorf("Runnable = %v, want %s", err, want)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{Name: "w"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.FileOrder = true
	for _, task := range []workflow.Task{
		{ID: "a", Name: "make", Outputs: []string{"x", "y"}, Estimate: 1500 * time.Millisecond},
		{ID: "b", Name: "use", Inputs: []string{"x", "own"}, Estimate: 2 * time.Second, Resources: corral.Resources{CPUs: 4}},
		{ID: "c", Name: "use", Inputs: []string{"y", "own"}},
	} {
		if err := b.Add(task, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(b.File("own", 5, workflow.Place{}), b.File("x", 2, workflow.Place{}), b.File("unused", 9, workflow.Place{}),
		b.Build(workflow.Place{})); err != nil {
		t.Fatal(err)
	}
	want := workflow.Summary{
		Name: "w", Tasks: 3, Edges: 2, Levels: 2, Width: 2, Transformations: 2, Files: 3, Inputs: 1,
		Bytes: 7, InputBytes: 5, Unsized: 1,
		CriticalPath: corral.Seconds(3500 * time.Millisecond), TotalWork: 3.5, CPUWork: 9.5, Unestimated: 1}
	if diff := cmp.Diff(want, wf.Summary()); diff != "" {
		t.Errorf("Summary (-want +got):\n%s", diff)
	}
	kinds := []workflow.Transformation{
		{Name: "use", Tasks: 2, FirstLevel: 1, LastLevel: 1, Estimated: 1, Mean: corral.Seconds(2 * time.Second),
			Least: corral.Seconds(2 * time.Second), Most: corral.Seconds(2 * time.Second), Total: 2, Share: 0.571429, MostCPUs: 4},
		{Name: "make", Tasks: 1, Estimated: 1, Mean: corral.Seconds(1500 * time.Millisecond), Least: corral.Seconds(1500 * time.Millisecond),
			Most: corral.Seconds(1500 * time.Millisecond), Total: 1.5, Share: 0.428571, MostCPUs: 1},
	}
	if diff := cmp.Diff(kinds, wf.Transformations()); diff != "" {
		t.Errorf("Transformations (-want +got):\n%s", diff)
	}
	estimates := []time.Duration{1500 * time.Millisecond, 2 * time.Second, time.Minute}
	if diff := cmp.Diff(estimates, wf.Estimates(time.Minute)); diff != "" {
		t.Errorf("Estimates (-want +got):\n%s", diff)
	}
}

// TestEstimated: 0 is an estimate if it was measured, and not an estimate without measurements.
func TestEstimated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		task workflow.Task
		want time.Duration
		ok   bool
	}{
		{workflow.Task{}, 0, false},
		{workflow.Task{Estimate: time.Second}, time.Second, true},
		{workflow.Task{Execution: workflow.Execution{Worker: "n1"}}, 0, true},
		{workflow.Task{Instant: true}, 0, true},
		{workflow.Task{Execution: workflow.Execution{Runtime: time.Second}}, 0, false}, // the file marks it as unknown
	} {
		if got, ok := tc.task.Estimated(); got != tc.want || ok != tc.ok {
			t.Errorf("%+v: %s, %v, want %s, %v", tc.task, got, ok, tc.want, tc.ok)
		}
	}
}

func TestWithExecutions(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{
		Name: "w", Machines: []workflow.Machine{{Name: "of another run"}},
		Tasks: []workflow.Task{{ID: "a", Estimate: time.Minute, Execution: workflow.Execution{Runtime: time.Hour}}, {ID: "b"}, {ID: "c"}},
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ran := []workflow.Execution{{Runtime: time.Second, Worker: "n2"}, {}, {Runtime: 2 * time.Second, Worker: "n1"}}
	got := wf.WithExecutions(began, 3*time.Second, ran)
	if !got.ExecutedAt.Equal(began) || got.Makespan != 3*time.Second || got.Tasks[0].Estimate != time.Minute {
		t.Errorf("WithExecutions = %+v, want the beginning and the makespan of the run, and the estimates unchanged", got)
	}
	for i := range ran {
		if got.Tasks[i].Execution != ran[i] {
			t.Errorf("execution of task %s is %+v, want %+v", got.Tasks[i].ID, got.Tasks[i].Execution, ran[i])
		}
	}
	if diff := cmp.Diff([]workflow.Machine{{Name: "n1"}, {Name: "n2"}}, got.Machines); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
	if wf.Makespan != 0 || wf.Tasks[0].Runtime != time.Hour || wf.Machines[0].Name != "of another run" {
		t.Errorf("the workflow itself was changed: %+v", wf)
	}
}

// TestBytesOfATask: the sum does not overflow, even for unrealistic sizes.
func TestBytesOfATask(t *testing.T) {
	t.Parallel()
	w := &workflow.Workflow{FileSizes: map[string]int64{"a": 1 << 62, "b": 1 << 62, "c": 5},
		Tasks: []workflow.Task{{Inputs: []string{"a", "b"}}, {Inputs: []string{"c"}, Outputs: []string{"unknown"}}}}
	for i, want := range []int64{1 << 42, 5} {
		if got := w.Bytes(i); got != want {
			t.Errorf("task %d has %d bytes, want %d", i, got, want)
		}
	}
}
