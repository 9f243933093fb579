package run

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/workflow"
)

// tasksOf lists all tasks of a run.
func tasksOf(t testing.TB, m *Manager, id corral.RunID) ([]api.TaskStatus, error) {
	t.Helper()
	tasks, _, err := TaskPage(asLocal(t), m, id, Choice{Limit: 1 << 30})
	return values(tasks), err
}

func values(tasks []*api.TaskStatus) (all []api.TaskStatus) {
	for _, t := range tasks {
		all = append(all, *t)
	}
	return all
}

// listing returns the listing of all tasks of a state.
func listing(s *state) []api.TaskStatus {
	c := Choice{Limit: 1 << 30}
	all, _ := c.page(len(s.plan.flow.Tasks), func(i int) *api.TaskStatus {
		info := s.x.Task(i)
		return s.row(i, &info)
	})
	return values(all)
}

// TestMostTasks: the numbers that clients derive from a task's number, such as a job's, do not collide.
func TestMostTasks(t *testing.T) {
	if execution.MostTasks != api.MaxOpenTasks {
		t.Errorf("an execution has up to %d tasks, clients are told %d", execution.MostTasks, api.MaxOpenTasks)
	}
	p := &plan{flow: &workflow.Workflow{Tasks: make([]workflow.Task, execution.MostTasks)}, grown: &grown{}}
	in := one()
	if _, err := p.addition(&in, Once{}); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("one task more than that: %v, want it unsatisfiable", err)
	}
}

// one requests a task of one second.
func one(after ...api.Condition) api.NewTask {
	return api.NewTask{
		Argv: []string{"true"}, Resources: corral.Resources{CPUs: 1}, TaskTimes: api.TaskTimes{Estimate: s(1)}, After: after,
	}
}

func (w *world) add(id corral.RunID, in api.NewTask) api.AddedTasks {
	w.Helper()
	added, err := AddTask(asLocal(w), w.manager, id, in, Once{})
	if err != nil {
		w.Fatal(err)
	}
	return added
}

func (w *world) open() corral.Run {
	w.Helper()
	return w.create(api.NewRun{Open: true, WorkflowName: "mine"})
}

// awaitTasks returns when the tasks are over.
func (w *world) awaitTasks(id corral.RunID, first, last int) {
	w.Helper()
	if err := AwaitTasks(asLocal(w), w.manager, id, Choice{Numbers: []Numbers{{first, last}}}); err != nil {
		w.Fatal(err)
	}
}

// An open run remains when all its tasks are over, and ends when it is closed.
func TestOpenRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer func() { w.stop() }()
		row := w.open()
		if !row.Open || row.Workflow != "mine" || row.State != corral.RunRunning {
			t.Fatalf("created %+v", row)
		}
		if got, want := w.add(row.ID, one()), (api.AddedTasks{First: 1, Count: 1}); got != want {
			t.Errorf("added %v, want %v", got, want)
		}
		array := one(api.Condition{Task: 1, When: api.WhenSucceeded})
		array.Elements, array.Name, array.Attributes = 3, "many", map[string]string{"account": "physics"}
		if got, want := w.add(row.ID, array), (api.AddedTasks{First: 2, Count: 3}); got != want {
			t.Errorf("added %v, want %v", got, want)
		}
		w.awaitTasks(row.ID, 1, 4)
		<-time.After(time.Hour) // in virtual time: longer than any stall limit
		if row = w.run(row.ID); row.State != corral.RunRunning || row.Tasks.Done != 4 {
			t.Fatalf("run is %s (%s), tasks %+v", row.State, row.Reason, row.Tasks)
		}
		tasks, err := tasksOf(t, w.manager, row.ID)
		if err != nil || len(tasks) != 4 || tasks[3].Element != 2 || tasks[3].Array != 2 || tasks[3].Name != "many" ||
			tasks[3].Attributes["account"] != "physics" || tasks[3].OverAt.IsZero() {
			t.Errorf("tasks %+v, %v", tasks, err)
		}
		if closed, err := Close(asLocal(t), w.manager, "ann", row.ID); err != nil {
			t.Fatal(closed, err)
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded || row.Report == nil {
			t.Errorf("run is %s: %s", row.State, row.Reason)
		}
		if _, err := os.Stat(filepath.Join(row.Dir, indexFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an open run has an index: %v", err)
		}
		after, err := tasksOf(t, w.manager, row.ID) // read from its directory
		if diff := cmp.Diff(tasks, after); err != nil || diff != "" {
			t.Errorf("tasks of a run that is over (-before +after), %v:\n%s", err, diff)
		}
		_, err = AddTask(asLocal(t), w.manager, row.ID, one(), Once{})
		if corral.KindOf(err) != corral.Conflict {
			t.Errorf("adding to a run that is over: %v, want a conflict", err)
		}
	})
}

// After a restart, added tasks still exist, and a repeated request gets the same numbers.
func TestOpenRunRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		row := w.open()
		w.add(row.ID, one())
		w.awaitTasks(row.ID, 1, 1)
		c.lose("w1")
		in := one(api.Condition{Task: 1, When: api.WhenEnded})
		in.Note, in.Elements = "echo\n", 2
		again := func(of Once) (api.AddedTasks, error) { return AddTask(asLocal(t), w.manager, row.ID, in, of) }
		of := Once{Key: "k", Request: "digest"}
		first, err := again(of)
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
		c.restart()
		w.start()
		defer func() { w.stop() }()
		if second, err := again(of); err != nil || second != first {
			t.Errorf("repeated: %v, %v, want %v", second, err, first)
		}
		if _, err := again(Once{Key: "k", Request: "other"}); corral.KindOf(err) != corral.KeyReused {
			t.Errorf("another request under the key: %v", err)
		}
		if next, err := again(Once{}); err != nil || next.First != first.First+2 {
			t.Errorf("the next are %v, %v: numbers have a gap", next, err)
		}
		c.join(&simWorker{id: "w2", cpus: 1, memoryMiB: 2048})
		w.awaitTasks(row.ID, 1, 5)
		if row := w.run(row.ID); row.State != corral.RunRunning {
			t.Errorf("run is %s", row.State)
		}
	})
}

// A refused request changes nothing, and does not leave a note.
func TestOpenRunRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster(oneWorker()))
		defer func() { w.stop() }()
		row := w.open()
		in := one(api.Condition{Task: 1, When: api.WhenEnded})
		in.Note = "note"
		_, err := AddTask(asLocal(t), w.manager, row.ID, in, Once{})
		if corral.KindOf(err) != corral.Unsatisfiable || !strings.HasPrefix(err.Error(), "after[0]: ") {
			t.Errorf("a wait for no task: %v", err)
		}
		if _, err := os.Stat(filepath.Join(row.Dir, executor.DataDir, notesDir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a note is left: %v", err)
		}
		if tasks, err := tasksOf(t, w.manager, row.ID); err != nil || len(tasks) != 0 {
			t.Errorf("tasks %v, %v", tasks, err)
		}
		closed := w.create(api.NewRun{Workflow: document(spec{ID: "one", Seconds: 60})})
		if _, err := AddTask(asLocal(t), w.manager, closed.ID, one(), Once{}); corral.KindOf(err) != corral.Conflict {
			t.Errorf("adding to a run with a workflow: %v, want a conflict", err)
		}
		if _, err := Close(asLocal(t), w.manager, "ann", closed.ID); corral.KindOf(err) != corral.Conflict {
			t.Errorf("closing a run with a workflow: %v, want a conflict", err)
		}
	})
}

// A cancelled run is closed. When resumed, it runs the remaining tasks and ends.
func TestCancelOpenRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer func() { w.stop() }()
		row := w.open()
		long := one()
		long.Estimate = s(1000)
		w.add(row.ID, long)
		w.add(row.ID, one(api.Condition{Task: 1, When: api.WhenSucceeded}))
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Running == 1 && r.Tasks.Waiting == 1 })
		if _, err := w.manager.Cancel(asLocal(t), "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunCancelled {
			t.Fatalf("run is %s", row.State)
		}
		if _, err := w.manager.Resume(asLocal(t), "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded || row.Tasks.Done != 2 {
			t.Errorf("resumed, it is %s with %+v", row.State, row.Tasks)
		}
	})
}

// Tasks that are over may be retried, and a cancelled task that waited waits again.
func TestRetryInOpenRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		c.run = func(task execution.Task) (execution.Status, time.Duration) {
			if task.Index == 0 && task.Attempt == 1 {
				return execution.Failed, 10 * time.Second
			}
			return execution.Done, 10 * time.Second
		}
		w := newWorld(t, c)
		defer func() { w.stop() }()
		row := w.open()
		w.add(row.ID, one())
		w.add(row.ID, one(api.Condition{Task: 1, When: api.WhenEnded}))
		w.add(row.ID, one(api.Condition{Task: 1, When: api.WhenSucceeded}))
		ask := func(what func(context.Context, string, corral.RunID, []string) (corral.Run, error), tasks ...string) {
			t.Helper()
			if _, err := what(asLocal(t), "ann", row.ID, tasks); err != nil {
				t.Error(err)
			}
		}
		ask(w.manager.CancelTasks, "2")
		ask(w.manager.RetryTasks, "2")
		if states := w.states(row.ID); states[1] != corral.TaskWaiting {
			t.Errorf("a cancelled task that waited is %s after its retry", states[1])
		}
		w.awaitTasks(row.ID, 1, 3)
		tasks, err := tasksOf(t, w.manager, row.ID)
		if err != nil || tasks[0].State != corral.TaskFailed || tasks[1].State != corral.TaskDone ||
			tasks[2].State != corral.TaskSkipped || tasks[2].Cause != corral.CauseNever {
			t.Fatalf("tasks %+v, %v", tasks, err)
		}
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"3"}); corral.KindOf(err) != corral.Conflict {
			t.Errorf("retry of one that waits in vain: %v, want a conflict", err)
		}
		ask(w.manager.RetryTasks, "1", "2", "3")
		w.awaitTasks(row.ID, 1, 3)
		if diff := cmp.Diff([]corral.TaskState{"done", "done", "done"}, w.states(row.ID)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
		f, err := Workflow(asLocal(t), w.run(row.ID))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); err != nil || !strings.Contains(string(text), `"id": "3"`) &&
			!strings.Contains(string(text), `"id":"3"`) {
			t.Errorf("workflow %s, %v", text, err)
		}
	})
}

// In an open run, a task that no worker can take waits for one that can, without a time limit and without a busy loop,
// which would stop virtual time. When the run is closed, its stall clock starts.
func TestOpenRunThatLacksWorkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster(oneWorker()))
		defer func() { w.stop() }()
		row := w.open()
		wide := one()
		wide.CPUs = 64
		w.add(row.ID, wide)
		<-time.After(time.Hour)
		if row = w.run(row.ID); row.State != corral.RunRunning || !strings.Contains(row.Reason, "64 cpus") {
			t.Fatalf("run is %s (%s)", row.State, row.Reason)
		}
		closedAt := time.Now()
		if _, err := Close(asLocal(t), w.manager, "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		row = w.awaitOver(row.ID)
		if took := row.EndedAt.Sub(closedAt); row.State != corral.RunStalled || took < time.Duration(row.Options.Stall) {
			t.Errorf("run is %s (%s) %v after it was closed", row.State, row.Reason, took)
		}
	})
}

// A request that waits for a task that was not over at the end of its run fails, instead of waiting or polling forever.
func TestAwaitTasksOfARunThatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newSimCluster(oneWorker()))
		defer func() { w.stop() }()
		row := w.open()
		wide := one()
		wide.CPUs = 64
		w.add(row.ID, wide)
		asked := Choice{Numbers: []Numbers{{1, 1}}}
		heard := make(chan error, 1)
		go func() { heard <- AwaitTasks(asLocal(t), w.manager, row.ID, asked) }()
		<-time.After(time.Minute)
		if _, err := w.manager.Cancel(asLocal(t), "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		w.awaitOver(row.ID)
		for _, err := range []error{<-heard, AwaitTasks(asLocal(t), w.manager, row.ID, asked)} {
			if corral.KindOf(err) != corral.Conflict {
				t.Errorf("waiting for a task of a run that was cancelled: %v, want a conflict", err)
			}
		}
	})
}

// notesIn lists the notes in a run's directory.
func notesIn(t *testing.T, row corral.Run) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(row.Dir, executor.DataDir, notesDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The note of a task is removed some time after the task is done, and the note of an array some time after its last
// task. Tasks that are not done keep their notes and can be retried. All this survives a restart of corrald.
func TestSpentNotes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(&simWorker{id: "w1", cpus: 2, memoryMiB: 2048})
		c.run = func(task execution.Task) (execution.Status, time.Duration) {
			switch {
			case task.Index == 1 && task.Attempt == 1:
				return execution.Failed, time.Second
			case task.Index == 3:
				return execution.Done, time.Hour
			}
			return execution.Done, time.Second
		}
		w := newWorld(t, c)
		defer func() { w.stop() }()
		row := w.open()
		in := one()
		in.Note = "echo"
		w.add(row.ID, in)
		w.add(row.ID, in)
		in.Elements = 2
		w.add(row.ID, in)
		in.Elements, in.After = 0, []api.Condition{{Task: 4, When: api.WhenFailed}}
		w.add(row.ID, in)
		w.awaitTasks(row.ID, 1, 3)
		if diff := cmp.Diff([]string{"1", "2", "3", "5"}, notesIn(t, row)); diff != "" {
			t.Errorf("notes of tasks that are just over (-want +got):\n%s", diff)
		}
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"1"}); err != nil {
			t.Errorf("a task that is just done is not run again: %v", err)
		}
		w.stop()
		c.restart()
		w.start()
		w.awaitTasks(row.ID, 1, 3)
		<-time.After(noteAge + 2*sweepEvery)
		if diff := cmp.Diff([]string{"2", "3", "5"}, notesIn(t, row)); diff != "" {
			t.Errorf("notes (-want +got):\n%s", diff)
		}
		_, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"2", "1"})
		if corral.KindOf(err) != corral.Conflict || !strings.Contains(err.Error(), "task 1 was done more than 5m0s ago") {
			t.Errorf("retry of a task without its note: %v", err)
		}
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"2"}); err != nil {
			t.Errorf("retry of a task that failed: %v", err)
		}
		w.awaitTasks(row.ID, 1, 5)
		<-time.After(noteAge + 2*sweepEvery)
		if diff := cmp.Diff([]string{"5"}, notesIn(t, row)); diff != "" {
			t.Errorf("notes when all is over (-want +got):\n%s", diff)
		}
		in.After = nil
		w.add(row.ID, in)
		w.awaitTasks(row.ID, 6, 6)
		if _, err := Close(asLocal(t), w.manager, "ann", row.ID); err != nil {
			t.Fatal(err)
		}
		w.awaitOver(row.ID)
		if diff := cmp.Diff([]string{"5"}, notesIn(t, row)); diff != "" {
			t.Errorf("notes of a run that is over (-want +got):\n%s", diff)
		}
	})
}

// A request for tasks since a time does not return tasks that were over before.
func TestTasksSince(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer func() { w.stop() }()
		row := w.open()
		w.add(row.ID, one())
		w.add(row.ID, one(api.Condition{Task: 1, When: api.WhenFailed}))
		w.awaitTasks(row.ID, 1, 2)
		<-time.After(time.Minute)
		since := time.Now()
		long := one()
		long.Estimate = s(1000)
		w.add(row.ID, one())
		w.awaitTasks(row.ID, 3, 3)
		w.add(row.ID, long)
		ids := func(c Choice) (all []string) {
			t.Helper()
			c.Limit = 10
			tasks, _, err := TaskPage(asLocal(t), w.manager, row.ID, c)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				all = append(all, task.ID)
			}
			return all
		}
		done := []corral.TaskState{corral.TaskDone}
		for _, tc := range []struct {
			choice Choice
			want   []string
		}{
			{Choice{}, []string{"1", "2", "3", "4"}},
			{Choice{Since: since}, []string{"2", "3", "4"}}, // tasks that never began may still be waiting
			{Choice{Since: since, States: done}, []string{"3"}},
			{Choice{States: done}, []string{"1", "3"}},
			{Choice{Since: since.Add(time.Hour), States: done}, nil},
		} {
			if diff := cmp.Diff(tc.want, ids(tc.choice)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", tc.choice, diff)
			}
		}
	})
}
