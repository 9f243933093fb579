package embedded_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// A trip is a run's directory, a parcel's folder, and a directory on another machine.
type trip struct {
	run, spool, away string
}

func newTrip(t *testing.T) trip {
	t.Helper()
	dir := t.TempDir()
	p := trip{filepath.Join(dir, "D"), filepath.Join(dir, "D", "jobs", "1"), filepath.Join(dir, "away")}
	for _, folder := range []string{filepath.Join(p.run, executor.DataDir), p.away} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// send copies names like HTCondor, which follows links.
func send(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		if out, err := exec.Command("cp", "-rL", filepath.Join(from, name), to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// job sends a job of tasks to the other machine and back.
func (p trip) job(ctx context.Context, t *testing.T, tasks ...execution.Task) []execution.Result {
	t.Helper()
	return p.send(ctx, t, execution.Job{Run: 7, Seq: 3, Dir: p.run, CPUs: 2, Tasks: tasks})
}

// send sends a job to the other machine and back.
func (p trip) send(ctx context.Context, t *testing.T, job execution.Job) []execution.Result {
	t.Helper()
	if err := transfer.Pack(t.Context(), p.spool, job); err != nil {
		t.Fatal(err)
	}
	send(t, p.spool, p.away, transfer.JobFile, transfer.InDir)
	if err := transfer.Execute(ctx, p.away, "tag/0", corral.Resources{}); err != nil {
		t.Fatal(err)
	}
	send(t, p.away, p.spool, transfer.ResultFile, transfer.OutDir)
	var results []execution.Result
	for range 2 { // repeated, as after a crash in between
		var err error
		if results, err = transfer.Unpack(p.spool, job); err != nil {
			t.Fatal(err)
		}
	}
	return results
}

func TestParcelBringsBackOutputs(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	data := filepath.Join(p.run, executor.DataDir)
	for name, text := range map[string]string{"in/a.txt": "alpha\n", "tree/x/y": "deep\n", "in/run.sh": "#!/bin/sh\necho ran\n", "out/c": "left by an attempt that was cut\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(data, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	results := p.job(t.Context(), t, execution.Task{
		Index: 5, ID: "first", Attempt: 2, Estimate: time.Second, Inputs: []string{"in/a.txt", "tree", "in/run.sh"},
		Outputs: []string{"out/c", "log", "made"}, Stdin: "in/a.txt", Stdout: "log",
		Argv: []string{"sh", "-c", `cat - tree/x/y >out/c; in/run.sh; echo "$CORRAL_RUN $CORRAL_TASK $CORRAL_ATTEMPT $CORRAL_CPUS"; echo oops >&2; mkdir made; echo 1 >made/one; ln -s one made/link`},
	}, execution.Task{Index: 6, ID: "second", Attempt: 1, Argv: []string{"false"}, Estimate: time.Second})
	if len(results) != 2 || results[0].Status != execution.Done || results[0].Worker != "tag/0" || results[0].Key != (execution.Key{Run: 7, Seq: 3}) || results[1].Status != execution.Failed {
		t.Fatalf("results = %+v", results)
	}
	first := filepath.Join(p.run, executor.TasksDir, "first.2")
	for name, want := range map[string]string{
		filepath.Join(data, "out/c"): "alpha\ndeep\n", filepath.Join(data, "log"): "ran\n7 first 2 2\n", filepath.Join(data, "made/link"): "1\n",
		filepath.Join(first, "stderr"): "oops\n", filepath.Join(first, "in/a.txt"): "alpha\n",
	} {
		if got := read(t, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if link, err := os.Readlink(filepath.Join(data, "made", "link")); link != "one" {
		t.Errorf("link = %q, %v", link, err)
	}
	if got := read(t, first, executor.RecordFile); !strings.Contains(got, `"task":"first"`) {
		t.Errorf("record = %s", got)
	}
	read(t, p.run, executor.TasksDir, "second.1", "stdout")
}

// A task's trace is returned with the task.
func TestTraceComesBack(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	results := p.send(t.Context(), t, execution.Job{
		Run: 7, Seq: 3, Dir: p.run, CPUs: 1, Care: execution.Care{Trace: corral.TraceProcesses},
		Tasks: []execution.Task{{ID: "t", Attempt: 1, Argv: []string{"true"}, Estimate: time.Second}},
	})
	if len(results) != 1 || results[0].Status != execution.Done {
		t.Errorf("results = %+v", results)
	}
	if got := read(t, p.run, executor.TasksDir, "t.1", executor.TraceFile); !strings.Contains(got, `"mode":"processes"`) {
		t.Errorf("trace = %s", got)
	}
}

// TestRemoteFailuresAreTheSame expects the same failures as TestTaskThatFails expects of a worker.
func TestRemoteFailuresAreTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range failures() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newTrip(t)
			if err := os.WriteFile(filepath.Join(p.run, executor.DataDir, "in.txt"), []byte("not a program\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			tt.task.Attempt, tt.task.Estimate = 1, time.Second
			if tt.task.ID == "" {
				tt.task.ID = "t"
			}
			results := p.job(t.Context(), t, tt.task)
			if len(results) != 1 || results[0].Status != execution.Failed || results[0].Exit != tt.exit || !strings.Contains(results[0].Reason, tt.want) {
				t.Errorf("results = %+v, want failure with %q and exit %d", results, tt.want, tt.exit)
			}
			absent(t, p.run, executor.DataDir, "out")
			if tt.exit >= 0 {
				read(t, p.run, executor.TasksDir, "t.1", executor.RecordFile)
			}
		})
	}
}

func TestParcelThatIsCutOff(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	ctx, cancel := context.WithCancel(t.Context())
	running := filepath.Join(p.away, "run", executor.TasksDir, "t.1", "running")
	go func() {
		defer cancel()
		for i := 0; i < 12000; i++ {
			if _, err := os.Stat(running); err == nil {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	results := p.job(ctx, t, execution.Task{ID: "t", Attempt: 1, Argv: []string{"sh", "-c", "echo >running; sleep 60"}}, execution.Task{Index: 1, ID: "u", Attempt: 1, Argv: []string{"true"}})
	if len(results) != 1 || results[0].Status != execution.Cut {
		t.Errorf("results = %+v, want one that was cut", results)
	}
}

// A task that compares the ages of two files gets the same result if its files travelled.
func TestTravelledFilesKeepTheirAge(t *testing.T) {
	t.Parallel()
	b, scratch := newBlindBed(t, dispatch.Config{})
	old := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, name := range []string{"file", "tree/leaf"} {
		b.data(t, name, name)
		if err := os.Chtimes(filepath.Join(b.dir, executor.DataDir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	j := sh(1, b.dir, "stat -L -c %Y file tree/leaf; mkdir there; touch -d @1000 alone there/leaf")
	j.Tasks[0].Inputs, j.Tasks[0].Outputs = []string{"file", "tree"}, []string{"alone", "there"}
	b.d.Submit([]execution.Job{j})
	if got := b.sink.awaitResults(t, 1)[1]; got.Status != execution.Done {
		t.Fatalf("result = %+v, want done", got)
	}
	if got := strings.Fields(read(t, b.dir, executor.TasksDir, j.Tasks[0].ID+".1", "stdout")); len(got) != 2 || got[0] != "981173106" || got[1] != got[0] {
		t.Errorf("inputs are of %q, want 981173106 twice", got)
	}
	for _, name := range []string{"alone", "there/leaf"} {
		if info, err := os.Stat(filepath.Join(b.dir, executor.DataDir, name)); err != nil || info.ModTime().Unix() != 1000 {
			t.Errorf("%s is of %v (%v), want 1000 s after the epoch", name, info, err)
		}
	}
	nothingLeft(t, b, scratch)
}

// A worker that must leave does not wait until a large folder is packed.
func TestPackingStops(t *testing.T) {
	t.Parallel()
	p := newTrip(t)
	tree := filepath.Join(p.run, executor.DataDir, "tree")
	if err := errors.Join(os.Mkdir(tree, 0o700), os.WriteFile(tree+"/file", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := transfer.Pack(ctx, p.spool, execution.Job{Dir: p.run, Tasks: []execution.Task{{ID: "t", Inputs: []string{"tree"}}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("packing: %v, want %v", err, context.Canceled)
	}
}
