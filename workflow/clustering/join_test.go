package clustering_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// build completes a workflow of tasks that are ordered by files.
func build(t interface{ Fatal(...any) }, tasks ...workflow.Task) *workflow.Workflow {
	wf := &workflow.Workflow{Name: "w"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.FileOrder = true
	for _, task := range tasks {
		if err := b.Add(task, workflow.Place{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		t.Fatal(err)
	}
	return wf
}

// sh returns a task that runs a shell command.
func sh(id, command string, inputs, outputs []string) workflow.Task {
	return workflow.Task{
		ID: id, Name: "sh", Argv: []string{"sh", "-c", command}, Inputs: inputs, Outputs: outputs,
		Estimate: time.Second, Control: &workflow.Control{Label: "all"},
	}
}

var byLabel = clustering.Rule{Kind: clustering.ByLabel}

// play joins all tasks into one job, and runs its script in a folder with files.
func play(t *testing.T, files map[string]string, tasks ...workflow.Task) (dir string, status int, said string) {
	t.Helper()
	wf, scripts, err := clustering.Join(build(t, tasks...), byLabel)
	if err != nil || len(wf.Tasks) != 1 || len(scripts) != 1 {
		t.Fatalf("%d tasks, %d scripts, %v", len(wf.Tasks), len(scripts), err)
	}
	dir = t.TempDir()
	files[scripts[0].Name] = scripts[0].Text
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if missing := slices.DeleteFunc(slices.Clone(wf.Tasks[0].Inputs), func(f string) bool { _, ok := files[f]; return ok }); len(missing) > 0 {
		t.Fatalf("the job asks for %q", missing)
	}
	cmd := exec.CommandContext(t.Context(), wf.Tasks[0].Argv[0], wf.Tasks[0].Argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return dir, exit.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, 0, string(out)
}

// look compares the files of a folder with their expected contents.
func look(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for name := range want {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		got[name] = string(b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestScriptRunsTasksInTheirOrder(t *testing.T) {
	t.Parallel()
	program := workflow.Task{
		ID: "it's three", Name: "p", Argv: []string{"./bin/pro gram", "$HOME", "a'b", `"\n`}, Inputs: []string{"bin/pro gram", "deep/er/two"},
		Outputs: []string{"out/'three'"}, Env: map[string]string{"WORD": "x y'z", "OTHER": "=1"},
		Streams: workflow.Streams{Stdin: "deep/er/two", Stdout: "out/'three'"}, Control: &workflow.Control{Label: "all"},
	}
	changes := sh("changes", "echo more >>count; test ! -e scratch", []string{"count"}, []string{"count"})
	dir, status, said := play(t, map[string]string{
		"in": "1\n", "count": "first\n", "bin/pro gram": "#!/bin/sh\ncat; printf '%s|' \"$@\"; echo $WORD $OTHER",
	},
		sh("one", "cat in; echo scratch >scratch; cat in >one; echo 2 >>one", []string{"in"}, []string{"one"}),
		sh("two", "test ! -e in && cat one >deep/er/two", []string{"one"}, []string{"deep/er/two"}),
		program, changes,
	)
	if status != 0 || said != "1\n" {
		t.Errorf("the job ended with %d:\n%s", status, said)
	}
	look(t, dir, map[string]string{
		"one": "1\n2\n", "deep/er/two": "1\n2\n", "out/'three'": "1\n2\n$HOME|a'b|\"\\n|x y'z =1\n", "count": "first\nmore\n", "in": "1\n",
	})
	if left, err := filepath.Glob(filepath.Join(dir, ".corral-tasks/*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// Files may have the names that are used for streams elsewhere.
func TestScriptTakesFilesOfAnyName(t *testing.T) {
	t.Parallel()
	dir, status, said := play(t, map[string]string{"-n": "dash\n"},
		sh("a", "echo listed >stdout; echo too >stderr", nil, []string{"stdout", "stderr"}),
		sh("b", "cat ./stdout ./stderr ./-n >-o", []string{"stdout", "stderr", "-n"}, []string{"-o"}),
	)
	if status != 0 {
		t.Errorf("the job ended with %d:\n%s", status, said)
	}
	look(t, dir, map[string]string{"stdout": "listed\n", "stderr": "too\n", "-o": "listed\ntoo\ndash\n"})
}

// A retry in the same folder finds the files of a task that failed there.
func TestScriptRunsAgainInItsFolder(t *testing.T) {
	t.Parallel()
	dir, status, said := play(t, map[string]string{"in": "1\n", ".corral-tasks/1/in": "old\n", ".corral-tasks/1/half": "old\n"},
		sh("a", "test ! -e half && cat in >one", []string{"in"}, []string{"one"}),
		sh("b", "cat one >two", []string{"one"}, []string{"two"}),
	)
	if status != 0 {
		t.Errorf("the job ended with %d:\n%s", status, said)
	}
	look(t, dir, map[string]string{"in": "1\n", "one": "1\n", "two": "1\n"})
}

func TestScriptEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	late := sh("late", "exec sleep 600", nil, nil)
	late.Timeout = 10 * time.Millisecond
	for _, c := range []struct {
		name   string
		task   workflow.Task
		status int
	}{
		{"its status", sh("second", "exit 7", nil, []string{"made/late"}), 7},
		{"a missing output", sh("second", "true", nil, []string{"made/late"}), 1},
		{"a time limit", late, 124},
		{"no such program", workflow.Task{ID: "none", Argv: []string{"no-such-program"}, Control: &workflow.Control{Label: "all"}}, 127},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, status, said := play(t, map[string]string{},
				sh("first", "echo 1 >first", nil, []string{"first"}), c.task, sh("third", "echo 3 >third", nil, []string{"third"}))
			if status != c.status || !strings.Contains(said, "task "+c.task.ID+" failed with exit status "+strconv.Itoa(c.status)+"\n") {
				t.Errorf("the job ended with %d, want %d:\n%s", status, c.status, said)
			}
			// Missing outputs are created as empty files, for schedulers that require them.
			want := map[string]string{"first": "1\n", "third": ""}
			if len(c.task.Outputs) > 0 {
				want["made/late"] = ""
			}
			look(t, dir, want)
		})
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	a, b := sh("a", "true", []string{"in"}, []string{"a.out"}), sh("b", "true", []string{"a.out"}, []string{"b.out"})
	c, d := sh("c", "true", []string{"b.out"}, []string{"c.out"}), sh("d", "true", []string{"c.out", "in"}, []string{"d.out"})
	b.MemoryMiB, b.Retries, a.Retries, d.GPUs = 500, new(3), new(1), 1
	wf, scripts, err := clustering.Join(build(t, a, b, c, d), byLabel)
	if err != nil || len(wf.Tasks) != 1 || len(scripts) != 1 {
		t.Fatalf("%d tasks, %d scripts, %v", len(wf.Tasks), len(scripts), err)
	}
	want := workflow.Task{
		ID: "job_sh", Name: "sh", Argv: []string{"sh", "job_sh.sh"}, Inputs: []string{"in", "job_sh.sh"},
		Outputs: []string{"a.out", "b.out", "c.out", "d.out"}, Streams: workflow.Streams{Stdout: "job_sh.out", Stderr: "job_sh.err"},
		Resources: corral.Resources{CPUs: 1, MemoryMiB: 500, GPUs: 1}, Estimate: 4 * time.Second, Retries: new(3),
	}
	if diff := cmp.Diff(want, wf.Tasks[0]); diff != "" {
		t.Errorf("the job (-want +got):\n%s", diff)
	}
	// A task with more control than a priority or a label splits the job.
	c.Control = &workflow.Control{Label: "all", Post: &workflow.Script{Argv: []string{"check"}}}
	wf, _, err = clustering.Join(build(t, a, b, c, d), byLabel)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range wf.Tasks {
		ids = append(ids, wf.Tasks[i].ID)
	}
	if diff := cmp.Diff([]string{"job_sh", "c", "d"}, ids); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if p := wf.Graph.Parents(2); !slices.Equal(p, []int{1}) {
		t.Errorf("d follows %v", p)
	}
	nested := build(t, a, b)
	nested.Subworkflows = []workflow.Subworkflow{{Name: "sub", First: 0, End: 2}}
	if _, _, err := clustering.Join(nested, byLabel); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("a workflow with a sub-DAG: %v", err)
	}
}

func TestPrioritise(t *testing.T) {
	t.Parallel()
	own := sh("own", "true", []string{"a.out"}, nil)
	own.Control.Priority = 7
	wf := build(t, sh("a", "true", nil, []string{"a.out"}), sh("b", "true", []string{"a.out"}, []string{"b.out"}), sh("c", "true", []string{"b.out"}, nil), own)
	var got []int
	for _, task := range clustering.Prioritise(wf).Tasks {
		got = append(got, task.Control.Priority)
	}
	if diff := cmp.Diff([]int{2, 1, 0, 7}, got); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
	if p := wf.Tasks[0].Control.Priority; p != 0 {
		t.Errorf("the workflow itself has changed: %d", p)
	}
}

// For any rule and tasks, each task is in exactly one job, the jobs form no cycle, and the inputs of a job are the
// files that its tasks read and that no earlier task of the job writes.
func TestJoinProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "tasks")
		tasks := make([]workflow.Task, n)
		for i := range tasks {
			var inputs []string
			for p := range i {
				if rapid.IntRange(0, 5).Draw(t, "edge") == 0 {
					inputs = append(inputs, strconv.Itoa(p))
				}
			}
			tasks[i] = sh("t"+strconv.Itoa(i), "true", inputs, []string{strconv.Itoa(i)})
			tasks[i].Control = &workflow.Control{
				Label: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "label"), Done: rapid.IntRange(0, 9).Draw(t, "done") == 0,
			}
		}
		rule := rapid.SampledFrom([]clustering.Rule{
			{}, clustering.Levels(1), clustering.Levels(3), clustering.Lasting(3 * time.Second), {Kind: clustering.Vertical}, byLabel,
		}).Draw(t, "rule")
		wf, scripts, err := clustering.Join(build(t, tasks...), rule)
		if err != nil {
			t.Fatal(err)
		}
		made := make(map[string]int)
		jobs := 0
		for i := range wf.Tasks {
			for _, f := range wf.Tasks[i].Outputs {
				made[f]++
			}
			if strings.HasPrefix(wf.Tasks[i].ID, "job_") {
				jobs++
			}
		}
		for i := range tasks {
			if made[strconv.Itoa(i)] != 1 {
				t.Errorf("task %d is in %d jobs", i, made[strconv.Itoa(i)])
			}
		}
		if jobs != len(scripts) {
			t.Errorf("%d jobs of several tasks, %d scripts", jobs, len(scripts))
		}
		for i := range wf.Tasks {
			for _, f := range wf.Tasks[i].Inputs {
				if made[f] > 0 && slices.Contains(wf.Tasks[i].Outputs, f) {
					t.Errorf("job %s asks for its own %s", wf.Tasks[i].ID, f)
				}
			}
		}
	})
}
