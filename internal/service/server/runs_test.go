package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/run"
)

// A bench is a cluster whose one worker accepts jobs and does nothing until the test ends them.
type bench struct {
	submitted chan execution.Job

	mu    sync.Mutex // guards the fields below
	sinks map[corral.RunID]dispatch.Sink
	jobs  map[corral.RunID][]execution.Key
}

func newBench() *bench {
	return &bench{
		submitted: make(chan execution.Job, 100),
		sinks:     map[corral.RunID]dispatch.Sink{},
		jobs:      map[corral.RunID][]execution.Key{},
	}
}

func (b *bench) Queue(corral.ClusterID, corral.RunOptions) (run.Dispatcher, error) { return b, nil }

func (b *bench) Offer(context.Context, corral.ClusterID) (execution.Offer, error) {
	return execution.Offer{CPUs: 1, Capacities: []execution.Capacity{{Worker: "w", CPUs: 1, MemoryMiB: 1024, Left: time.Hour}}}, nil
}

func (b *bench) Attach(id corral.RunID, sink dispatch.Sink) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sinks[id] = sink
}

func (b *bench) Detach(id corral.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sinks, id)
}

func (b *bench) Submit(jobs []execution.Job) {
	for _, j := range jobs {
		b.mu.Lock()
		b.jobs[j.Run] = append(b.jobs[j.Run], j.Key())
		b.mu.Unlock()
		select {
		case b.submitted <- j:
		default: // no test is listening
		}
	}
}

func (b *bench) Cancel(id corral.RunID, only ...int64) {
	if len(only) > 0 {
		return
	}
	b.mu.Lock()
	sink, jobs := b.sinks[id], b.jobs[id]
	delete(b.jobs, id)
	b.mu.Unlock()
	sink.Returned(jobs, false, time.Time{}, "cancelled")
}

func (b *bench) Withdraw(corral.RunID, []int64) {}

func (b *bench) Expect(corral.RunID, string, []execution.Job) {}

// end ends a job's task, with a file beside it.
func (b *bench) end(t *testing.T, j execution.Job, status execution.Status) {
	t.Helper()
	b.mu.Lock()
	sink := b.sinks[j.Run]
	b.jobs[j.Run] = nil
	b.mu.Unlock()
	if err := sink.Assigned("w", []execution.Key{j.Key()}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(j.Dir, "tasks", j.Tasks[0].ID+".1")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "stderr"), []byte("oh\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	err := sink.Finished([]execution.Result{{Key: j.Key(), Index: j.Tasks[0].Index, Attempt: 1, Status: status, Exit: 3,
		Reason: "exit status 3", Worker: "w", StartedAt: now, EndedAt: now}})
	if err != nil {
		t.Fatal(err)
	}
}

// newRuns starts a manager of runs that ends with the test.
func newRuns(t testing.TB, db *store.DB, clusters run.Clusters) *run.Manager {
	t.Helper()
	m := run.NewManager(slog.New(slog.DiscardHandler), db, clusters, filepath.Join(t.TempDir(), "runs"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := later(func() error { return m.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("runs: %v", err)
		}
	})
	return m
}

// chain is a workflow of two tasks with unusual ids, on separate lines.
const chain = `{"name": "chain", "schemaVersion": "1.5", "workflow": {
"specification": {"tasks": [
 {"name": "one", "id": "1st%2F", "parents": [], "children": ["b"]},
 {"name": "two", "id": "b", "parents": ["1st%2F"], "children": []}]},
"execution": {"makespanInSeconds": 0, "executedAt": "2026-01-01T00:00:00Z", "tasks": [
 {"id": "1st%2F", "runtimeInSeconds": 0, "command": {"program": "true"}},
 {"id": "b", "runtimeInSeconds": 0, "command": {"program": "true"}}]}}}`

func newRun() api.NewRun {
	return api.NewRun{Workflow: json.RawMessage(chain), WorkflowName: "chain.json", SourceDir: "/"}
}

func TestRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := newRun()
	in.Labels = map[string]string{"a": "1"}
	r := must(f.CreateRun(t.Context(), in, ""))(t)
	if r.Workflow != "chain" || r.State != corral.RunRunning || r.Owner != "local" || r.ClusterName != "default" || r.Tasks.Total != 2 {
		t.Errorf("run %+v", r)
	}
	job := <-f.bench.submitted

	tasks := must(f.RunTasks(t.Context(), r.ID))(t)
	if len(tasks) != 2 || tasks[0].ID != "1st%2F" || tasks[1].State != corral.TaskWaiting {
		t.Errorf("tasks %+v", tasks)
	}
	_, err := f.RunTaskLog(t.Context(), r.ID, "b", api.LogPart{File: "stderr"})
	wantKind(t, "log of a task that did not run", err, corral.NotFound, "file")

	f.bench.end(t, job, execution.Failed)
	r = must(f.WaitRun(t.Context(), r.ID, time.Minute))(t)
	if r.State != corral.RunFailed || r.Tasks.Failed != 1 || r.Tasks.Skipped != 1 {
		t.Errorf("run %+v, want FAILED with a task skipped", r)
	}
	if log, err := f.RunTaskLog(t.Context(), r.ID, "1st%2F", api.LogPart{File: "stderr"}); err != nil || string(log) != "oh\n" {
		t.Errorf("RunTaskLog() = %q, %v", log, err)
	}
	failed := must(f.RunTasks(t.Context(), r.ID, corral.TaskFailed))(t)
	if len(failed) != 1 || failed[0].ExitStatus == nil || *failed[0].ExitStatus != 3 {
		t.Errorf("failed tasks %+v", failed)
	}
	if entries := must(f.RunHistory(t.Context(), r.ID))(t); len(entries) < 2 || entries[0].Actor != "local" {
		t.Errorf("history %+v", entries)
	}
	for _, tc := range []struct {
		filter api.Filter
		want   int
	}{
		{api.Filter{}, 1},
		{api.Filter{Cluster: "default", States: []string{"FAILED", "STALLED"}, Labels: in.Labels}, 1},
		{api.Filter{States: []string{"RUNNING"}}, 0},
	} {
		if runs := must(f.Runs(t.Context(), tc.filter))(t); len(runs) != tc.want {
			t.Errorf("Runs(%+v) = %v, want %d", tc.filter, runs, tc.want)
		}
	}
}

// TestMovesOfARun: each may be repeated without another effect.
func TestMovesOfARun(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	r := must(f.CreateRun(t.Context(), newRun(), ""))(t)
	<-f.bench.submitted
	_, err := f.RemoveRun(t.Context(), r.ID, true)
	wantKind(t, "removing what runs", err, corral.Conflict, "run 1 (chain)")
	_, err = f.RemoveCluster(t.Context(), "default")
	wantKind(t, "removing the cluster of what runs", err, corral.Conflict, "")

	for range 2 {
		if got := must(f.CancelRun(t.Context(), r.ID))(t); got.State != corral.RunCancelling && got.State != corral.RunCancelled {
			t.Errorf("run is %s", got.State)
		}
	}
	if got := must(f.WaitRun(t.Context(), r.ID, time.Minute))(t); got.State != corral.RunCancelled {
		t.Errorf("run is %s, want CANCELLED", got.State)
	}
	for range 2 {
		if got := must(f.ResumeRun(t.Context(), r.ID))(t); got.State != corral.RunRunning {
			t.Errorf("run is %s, want RUNNING", got.State)
		}
	}
	<-f.bench.submitted
	must(f.CancelRun(t.Context(), r.ID))(t)
	must(f.WaitRun(t.Context(), r.ID, time.Minute))(t)
	for range 2 {
		if got := must(f.RemoveRun(t.Context(), r.ID, true))(t); got.State != corral.RunDeleted {
			t.Errorf("run is %s, want DELETED", got.State)
		}
	}
	if _, err := os.Stat(r.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory of the purged run: %v", err)
	}
}

func TestBadRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	cycle := strings.Replace(chain, `"parents": []`, `"parents": ["b"]`, 1)
	for _, tc := range []struct {
		name  string
		edit  func(*api.NewRun)
		kind  corral.Kind
		place string
	}{
		{"unknown cluster", func(r *api.NewRun) { r.Cluster = "nowhere" }, corral.NotFound, "cluster"},
		{"no workflow", func(r *api.NewRun) { r.Workflow = json.RawMessage(`{}`) }, corral.Invalid, "chain.json:1"},
		{"cycle", func(r *api.NewRun) { r.Workflow = json.RawMessage(cycle) }, corral.Invalid, "chain.json:3"},
		{"clustering", func(r *api.NewRun) { r.Options.Clustering = "some" }, corral.Invalid, "clustering"},
		{"retries", func(r *api.NewRun) { r.Options.Retries = -1 }, corral.Invalid, "retries"},
		{"dir", func(r *api.NewRun) { r.Dir = "here" }, corral.Invalid, "dir"},
		{"label", func(r *api.NewRun) { r.Labels = map[string]string{"": ""} }, corral.Invalid, "labels"},
	} {
		in := newRun()
		tc.edit(&in)
		_, err := f.CreateRun(t.Context(), in, "")
		wantKind(t, tc.name, err, tc.kind, tc.place)
	}
	if runs := must(f.Runs(t.Context(), api.Filter{All: true}))(t); len(runs) != 0 {
		t.Errorf("runs %v were created", runs)
	}
	for body, place := range map[string]string{
		`{"workflow": {}, "options": {"retry": 1}}`: "retry",
		`{"cluster": "default"}`:                    "workflow",
	} {
		if status, p, _ := f.send(t, "POST", "/v1/runs", body); status != 400 || p.Place != place {
			t.Errorf("%s: %d %+v, want 400 at %s", body, status, p, place)
		}
	}
}

// TestRunWithAKey: a repetition creates neither a run nor a directory, even when both requests are prepared at the
// same time.
func TestRunWithAKey(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	ids := make(chan corral.Run, 4)
	for range cap(ids) {
		go func() {
			r, err := f.CreateRun(t.Context(), newRun(), "k")
			if err != nil {
				t.Error(err)
			}
			ids <- r
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if r := <-ids; !cmp.Equal(first, r) {
			t.Errorf("answers %+v and %+v", first, r)
		}
	}
	dirs, err := os.ReadDir(filepath.Dir(first.Dir))
	if err != nil || len(dirs) != 1 {
		t.Errorf("directories %v, %v, want one", dirs, err)
	}
}

func TestPagesOfTasks(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	must(f.CreateRun(t.Context(), newRun(), ""))(t)
	for target, want := range map[string]string{
		"/v1/runs/1/tasks?limit=1":               `"next":"1"`,
		"/v1/runs/1/tasks?limit=10000":           `"id":"b"`,
		"/v1/runs/1/tasks?limit=1&after=1":       `"id":"b"`,
		"/v1/runs/1/tasks?after=2":               `{"items":[]}`,
		"/v1/runs/1/tasks?state=waiting&limit=1": `"id":"b"`,
		"/v1/runs/1/tasks?after=99999999999":     `{"items":[]}`,
	} {
		if _, _, body := f.send(t, "GET", target, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s in it", target, body, want)
		}
	}
	if _, _, body := f.send(t, "GET", "/v1/runs/1/tasks?state=waiting&limit=1", ""); strings.Contains(body, "next") {
		t.Errorf("the last page has a next: %s", body)
	}
}
