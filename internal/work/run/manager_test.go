package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func oneWorker() *simWorker { return &simWorker{id: "w1", cpus: 1, memoryMiB: 2048} }

func TestRunSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(&simWorker{id: "w1", cpus: 2, memoryMiB: 2048})
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(fan(4, 10)...)})
		if row.State != corral.RunRunning || row.Tasks.Total != 6 || row.Owner != "local" {
			t.Errorf("created run = %+v", row)
		}
		row = w.awaitOver(row.ID)
		if row.State != corral.RunSucceeded || row.Reason != "" {
			t.Fatalf("run is %s: %s", row.State, row.Reason)
		}
		if want := (corral.RunTasks{Total: 6, Done: 6}); row.Tasks != want {
			t.Errorf("tasks = %+v, want %+v", row.Tasks, want)
		}
		want := &corral.RunReport{
			Makespan: s(40), TaskTime: s(60), CPUs: 2, Parallelism: 1.5, CriticalPath: s(30),
			LowerBound: s(30), ListSchedule: s(40), OverBound: 4.0 / 3, OverList: 1,
		}
		if diff := cmp.Diff(want, row.Report); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
	})
}

func s(n float64) corral.Seconds { return corral.Seconds(n * float64(time.Second)) }

func TestExecutedWorkflowHasMeasuredRuntimes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		c.run = func(execution.Task) (execution.Status, time.Duration) { return execution.Done, 7 * time.Second }
		w := newWorld(t, c)
		defer w.stop()
		row := w.awaitOver(w.create(api.NewRun{Workflow: document(fan(1, 1)...)}).ID)
		flow, _, err := formats.ReadFile(asLocal(t), filepath.Join(row.Dir, executedFile), workflow.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range flow.Tasks {
			if task.Runtime != 7*time.Second || task.Worker != "w1" {
				t.Errorf("task %s: runtime %s on %q, want 7s on w1", task.ID, task.Runtime, task.Worker)
			}
		}
		if flow.Makespan != 21*time.Second {
			t.Errorf("makespan = %s, want 21s", flow.Makespan)
		}
	})
}

func TestReadyTasksStartByUpwardRank(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer w.stop()
		w.awaitOver(w.create(api.NewRun{Workflow: document(
			spec{ID: "short", Seconds: 1},
			spec{ID: "long", Seconds: 2}, spec{ID: "below", After: []string{"long"}, Seconds: 30},
			spec{ID: "middle", Seconds: 20},
		)}).ID)
		want := []string{"long.1", "middle.1", "short.1"}
		got := slices.DeleteFunc(c.startedTasks(), func(s string) bool { return s == "below.1" }) // it was ready too late
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order of starts (-want +got):\n%s", diff)
		}
	})
}

func TestRetriesWithBackoffThenFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		c.run = func(task execution.Task) (execution.Status, time.Duration) {
			if task.ID == "m0" {
				return execution.Failed, time.Second
			}
			return execution.Done, time.Second
		}
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(fan(2, 1)...), Options: corral.RunOptions{Retries: 3}})
		began := time.Now()
		stderr := filepath.Join(row.Dir, "tasks", "m0.4", "stderr") // as a worker would do
		if err := errors.Join(os.MkdirAll(filepath.Dir(stderr), 0o700), os.WriteFile(stderr, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		row = w.awaitOver(row.ID)
		if row.State != corral.RunFailed {
			t.Fatalf("run is %s", row.State)
		}
		// a, m0 or m1, and three more tries of a second each, after 0, 1 and 2 s; m1 may fit into a gap
		if took := time.Since(began); took < 8*time.Second || took > 11*time.Second {
			t.Errorf("took %s, want between 8s and 11s", took)
		}
		if want := (corral.RunTasks{Total: 4, Done: 2, Failed: 1, Skipped: 1}); row.Tasks != want {
			t.Errorf("tasks = %+v, want %+v", row.Tasks, want)
		}
		for _, part := range []string{"task m0 failed", "exit status 3", "attempt 4", "see " + stderr, "skipped below: 1"} {
			if !strings.Contains(row.Reason, part) {
				t.Errorf("reason %q does not say %q", row.Reason, part)
			}
		}
		if row.Report == nil || row.Report.RetriesUsed != 3 {
			t.Errorf("report = %+v, want 3 retries used", row.Report)
		}
	})
}

func TestLostWorkerCostsNoRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "one", Seconds: 60})})
		timer := time.AfterFunc(20*time.Second, func() {
			c.lose("w1")
			c.join(&simWorker{id: "w2", cpus: 1, memoryMiB: 2048})
		})
		defer timer.Stop()
		row = w.awaitOver(row.ID)
		if row.State != corral.RunSucceeded || row.Report.Requeued != 1 || row.Report.RetriesUsed != 0 || row.Report.LostWork != s(20) {
			t.Errorf("run is %s, report %+v", row.State, row.Report)
		}
		tasks, err := tasksOf(t, w.manager, row.ID)
		if err != nil || tasks[0].Attempts != 2 || tasks[0].Worker != "w2" || tasks[0].State != corral.TaskDone {
			t.Errorf("tasks = %+v, %v; want the second attempt on w2", tasks, err)
		}
	})
}

func TestCutTaskWaitsForWorkerThatStaysLonger(t *testing.T) {
	bubble(t, func(t *testing.T) {
		now := time.Now()
		c := newSimCluster(&simWorker{id: "w1", cpus: 1, memoryMiB: 1024, endsAt: now.Add(100 * time.Second)})
		c.run = func(execution.Task) (execution.Status, time.Duration) { return execution.Done, 150 * time.Second }
		c.extra = []execution.Capacity{{CPUs: 1, MemoryMiB: 1024, Left: 105 * time.Second}}
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "long", Seconds: 60}), Options: corral.RunOptions{Stall: s(30)}})
		row = w.awaitOver(row.ID)
		if row.State != corral.RunStalled || !strings.Contains(row.Reason, "needs 1m50s") {
			t.Errorf("run is %s: %s; want it to need more than the 100 s that it ran", row.State, row.Reason)
		}
		if row.Report == nil || row.Report.LostWork != s(100) || row.Report.Requeued != 1 {
			t.Errorf("report = %+v, want 100 s of lost work", row.Report)
		}
	})
}

func TestCancelAndResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(fan(3, 60)...)})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Done == 2 && r.Tasks.Running == 1 })
		row, err := w.manager.Cancel(asLocal(t), "ann", row.ID)
		if err != nil || row.State != corral.RunCancelling {
			t.Fatalf("Cancel = %s, %v", row.State, err)
		}
		row = w.awaitOver(row.ID)
		if want := (corral.RunTasks{Total: 5, Waiting: 1, Ready: 2, Done: 2}); row.State != corral.RunCancelled || row.Tasks != want {
			t.Errorf("run is %s, tasks %+v, want CANCELLED and %+v", row.State, row.Tasks, want)
		}
		if row.Reason != "cancelled by ann" {
			t.Errorf("reason = %q", row.Reason)
		}
		if _, err := w.manager.Cancel(asLocal(t), "ann", row.ID); corral.KindOf(err) != corral.Conflict {
			t.Errorf("second Cancel: %v, want a conflict", err)
		}
		if _, err := w.manager.Resume(asLocal(t), "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		row = w.awaitOver(row.ID)
		if row.State != corral.RunSucceeded {
			t.Errorf("resumed run is %s: %s", row.State, row.Reason)
		}
		started := c.startedTasks()
		if n := count(started, "a.1", "m0.1", "z.1"); n != 3 {
			t.Errorf("starts = %v: finished tasks were repeated", started)
		}
		if !slices.Contains(started, "m1.2") {
			t.Errorf("starts = %v, want a second attempt of what was killed", started)
		}
	})
}

func count(list []string, of ...string) int {
	n := 0
	for _, s := range list {
		if slices.Contains(of, s) {
			n++
		}
	}
	return n
}

func TestResumeOfFailedGivesFreshRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		c.run = func(task execution.Task) (execution.Status, time.Duration) {
			if task.ID == "a" && task.Attempt < 4 {
				return execution.Failed, time.Second
			}
			return execution.Done, time.Second
		}
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(fan(2, 1)...), Options: corral.RunOptions{Retries: 1, Clustering: "horizontal=1"}})
		if row = w.awaitOver(row.ID); row.State != corral.RunFailed || row.Tasks.Skipped != 3 {
			t.Fatalf("run is %s, tasks %+v", row.State, row.Tasks)
		}
		resumed, err := w.manager.Resume(asLocal(t), "ann", row.ID)
		if want := (corral.RunTasks{Total: 4, Waiting: 3, Ready: 1}); err != nil || resumed.Tasks != want || resumed.State != corral.RunRunning {
			t.Fatalf("Resume = %+v, %v", resumed, err)
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Errorf("resumed run is %s: %s", row.State, row.Reason)
		}
		if _, err := w.manager.Resume(asLocal(t), "ann", row.ID); corral.KindOf(err) != corral.Conflict {
			t.Errorf("resuming a run that succeeded: %v, want a conflict", err)
		}
	})
}

// A corrald that dies cannot stop its goroutines in order. This test stops it without notifying the cluster, whose
// workers continue.
func TestRestartResumesByItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(&simWorker{id: "w1", cpus: 2, memoryMiB: 2048})
		w := newWorld(t, c)
		row := w.create(api.NewRun{Workflow: document(fan(6, 10)...), Options: corral.RunOptions{Clustering: "horizontal=3"}})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Done == 3 })
		w.stop()
		c.restart()
		w.start()
		defer func() { w.stop() }()
		row = w.awaitOver(row.ID)
		if row.State != corral.RunSucceeded {
			t.Fatalf("run is %s: %s", row.State, row.Reason)
		}
		started := c.startedTasks()
		slices.Sort(started)
		if want := []string{"a.1", "m0.1", "m1.1", "m2.1", "m3.1", "m4.1", "m5.1", "z.1"}; !slices.Equal(started, want) {
			t.Errorf("starts = %v, want each task once", started)
		}
		if len(c.expected) == 0 {
			t.Error("nothing was expected back from the worker")
		}
	})
}

func TestRestartWhileCancelling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		row := w.create(api.NewRun{Workflow: document(fan(3, 60)...)})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Running == 1 })
		w.stop()
		c.restart()
		w.write(func(tx *store.Tx) error {
			_, err := tx.MoveRun(row.ID, corral.RunCancel, "")
			return err
		})
		w.start()
		defer func() { w.stop() }()
		if row = w.awaitOver(row.ID); row.State != corral.RunCancelled {
			t.Errorf("run is %s: %s", row.State, row.Reason)
		}
	})
}

func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer w.stop()
		kept := w.create(api.NewRun{Workflow: document(spec{ID: "one", Seconds: 60})})
		if _, err := w.manager.Remove(asLocal(t), "ann", kept.ID, true); corral.KindOf(err) != corral.Conflict {
			t.Errorf("removing a running run: %v, want a conflict", err)
		}
		purged := w.create(api.NewRun{Workflow: document(spec{ID: "one", Seconds: 60}), Dir: filepath.Join(t.TempDir(), "d")})
		w.awaitOver(kept.ID)
		w.awaitOver(purged.ID)
		foreign := filepath.Join(purged.Dir, "notes.txt")
		if err := os.WriteFile(foreign, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for id, purge := range map[corral.RunID]bool{kept.ID: false, purged.ID: true} {
			row, err := w.manager.Remove(asLocal(t), "ann", id, purge)
			said := strings.HasSuffix(row.Reason, "has notes.txt, which does not belong to the run")
			if err != nil || row.State != corral.RunDeleted || said != purge {
				t.Errorf("Remove(%v) = %s (%s), %v", purge, row.State, row.Reason, err)
			}
		}
		if _, err := os.Stat(filepath.Join(kept.Dir, reportFile)); err != nil {
			t.Errorf("without purge: %v", err)
		}
		left, err := os.ReadDir(purged.Dir)
		if err != nil || len(left) != 1 || left[0].Name() != "notes.txt" {
			t.Errorf("with purge: %v, %v are left, want only what is not ours", left, err)
		}
	})
}

func TestUnreadableDirectoryFailsRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster())
		row := w.create(api.NewRun{Workflow: document(spec{ID: "one"})})
		w.stop()
		path := filepath.Join(row.Dir, workflowFile)
		text, err := os.ReadFile(path)
		if err := errors.Join(err, os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		w.clusters = newSimCluster(oneWorker())
		w.start()
		defer func() { w.stop() }()
		if row = w.awaitOver(row.ID); row.State != corral.RunFailed || !strings.Contains(row.Reason, path) {
			t.Fatalf("run is %s: %s", row.State, row.Reason)
		}
		if _, err := w.manager.Resume(asLocal(t), "ann", row.ID); corral.KindOf(err) != corral.Failed {
			t.Errorf("resuming without a workflow: %v, want it to fail", err)
		}
		if _, err := tasksOf(t, w.manager, row.ID); corral.KindOf(err) != corral.Failed {
			t.Errorf("listing the tasks without a workflow: %v, want it to fail", err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.manager.Resume(asLocal(t), "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Errorf("run is %s: %s", row.State, row.Reason)
		}
	})
}

// A purge reports the files that it leaves, and removes the pieces that were cut out of a journal, for any path.
func TestPurgeSaysWhatStays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		foreign []string
		want    string
	}{
		{nil, "its directory was deleted"},
		{[]string{"notes"}, "its directory stays: DIR has notes, which does not belong to the run"},
		{[]string{"a", "b", "c"}, "its directory stays: DIR has a and 2 more, which do not belong to the run"},
	} {
		l := layout{filepath.Join(t.TempDir(), "[d]*")}
		if err := l.create(text("{}"), []link{{"sub/in.txt", "/dev/null"}}); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(tt.foreign, journalFile, journalFile+".bad-20260102T030405.000") {
			if err := os.WriteFile(l.path(name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := l.purge()
		if got = strings.ReplaceAll(got, l.dir, "DIR"); err != nil || got != tt.want {
			t.Errorf("purge beside %q = %q, %v, want %q", tt.foreign, got, err, tt.want)
		}
		if left, err := l.names(); err != nil || !slices.Equal(left, tt.foreign) {
			t.Errorf("purge beside %q left %q (%v)", tt.foreign, left, err)
		}
	}
}

// An unsuitable place for a directory is reported before anything is created there.
func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]corral.Kind{file: corral.Invalid, filepath.Join(file, "d"): corral.Invalid} {
		if err := (layout{dir}).create(nil, nil); corral.KindOf(err) != want {
			t.Errorf("create at %s = %v, want it %s", dir, err, want)
		}
	}
	twice := layout{filepath.Join(t.TempDir(), "d")}
	err := twice.create(nil, []link{{"in", "/a"}, {"in", "/b"}})
	if _, gone := os.Stat(twice.dir); corral.KindOf(err) != corral.Failed || !errors.Is(gone, fs.ErrNotExist) {
		t.Errorf("create that cannot be completed = %v, and left %v; want it failed and nothing left", err, gone)
	}
}

// Files that have replaced a run's directory do not belong to the run.
func TestPurgeOfWhatIsNotTheRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster(oneWorker()))
		defer w.stop()
		for keep, put := range map[string]func(dir string) error{
			"":               func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
			executor.DataDir: func(dir string) error { return os.MkdirAll(filepath.Join(dir, executor.DataDir), 0o700) },
			workflowFile: func(dir string) error { // another project
				return errors.Join(os.MkdirAll(filepath.Join(dir, executor.DataDir), 0o700), os.WriteFile(filepath.Join(dir, workflowFile), nil, 0o600))
			},
		} {
			dir := filepath.Join(t.TempDir(), "d")
			row := w.create(api.NewRun{Workflow: document(spec{ID: "one", Seconds: 60}), Dir: dir})
			w.awaitOver(row.ID)
			if err := errors.Join(os.RemoveAll(dir), put(dir)); err != nil {
				t.Fatal(err)
			}
			row, err := w.manager.Remove(asLocal(t), "ann", row.ID, true)
			stays := err == nil && strings.HasPrefix(row.Reason, "its directory stays")
			if !stays && corral.KindOf(err) != corral.Failed {
				t.Errorf("%q: Remove = %q, %v, want it to stay", keep, row.Reason, err)
			}
			if _, err := os.Stat(filepath.Join(dir, keep)); err != nil {
				t.Errorf("%q: %v", keep, err)
			}
		}
	})
}
