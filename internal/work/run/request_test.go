package run

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// failing returns a cluster on which task b fails until mend is called.
func failing() (c *simCluster, mend func()) {
	c = newSimCluster(&simWorker{id: "w1", cpus: 4, memoryMiB: 1024, endsAt: time.Now().Add(24 * time.Hour)})
	mended := make(chan struct{})
	c.run = func(task execution.Task) (execution.Status, time.Duration) {
		select {
		case <-mended:
		default:
			if task.ID == "b" || task.ID == "c" {
				return execution.Failed, time.Second
			}
		}
		return execution.Done, 100 * time.Second
	}
	return c, func() { close(mended) }
}

// states lists the states of a run's tasks, in order.
func (w *world) states(id corral.RunID) (states []corral.TaskState) {
	w.Helper()
	tasks, err := tasksOf(w, w.manager, id)
	if err != nil {
		w.Fatal(err)
	}
	for _, t := range tasks {
		states = append(states, t.State)
	}
	return states
}

// The error for an unknown task lists the names that were probably intended.
func TestNoTask(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"b":  "tasks: run 7 has no task b; it has b.0, b.1, b.2 and 1 more",
		"c.": "tasks: run 7 has no task c.; it has c.0",
		"d":  "tasks: run 7 has no task d; it has a, b.0, b.1 and 4 more",
	} {
		ids := slices.Values([]string{"a", "b.0", "b.1", "b.2", "b.3", "c.0", "e"})
		if err := noTask("tasks", 7, id, ids); corral.KindOf(err) != corral.NotFound || err.Error() != want {
			t.Errorf("noTask(%q) = %v, want %s", id, err, want)
		}
	}
}

func TestCancelTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := failing()
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "a", Seconds: 60}, spec{ID: "x", Seconds: 60},
			spec{ID: "y", Seconds: 60, After: []string{"x"}}, spec{ID: "z", Seconds: 60, After: []string{"a"}})})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Running == 2 })
		for range 2 { // the second request changes nothing
			if _, err := w.manager.CancelTasks(asLocal(t), "ann", row.ID, []string{"x", "z"}); err != nil {
				t.Fatal(err)
			}
		}
		row = w.awaitOver(row.ID)
		want := []corral.TaskState{corral.TaskDone, corral.TaskFailed, corral.TaskSkipped, corral.TaskFailed}
		if got := w.states(row.ID); !slices.Equal(got, want) {
			t.Errorf("tasks are %v, want %v", got, want)
		}
		if want := "task x failed (cancelled by ann) in attempt 1; failed too: z; skipped below: 1"; row.Reason != want {
			t.Errorf("reason = %q, want %q", row.Reason, want)
		}
		if n := count(c.startedTasks(), "z.1", "y.1"); n != 0 {
			t.Errorf("starts = %v, want neither y nor z", c.startedTasks())
		}
		if _, err := w.manager.CancelTasks(asLocal(t), "ann", row.ID, []string{"x"}); corral.KindOf(err) != corral.Conflict {
			t.Errorf("of a run that is over: %v, want a conflict", err)
		}
		// A run that continues with the task makes the attempts that are due.
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"x", "z"}); err != nil {
			t.Fatal(err)
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Errorf("run is %s: %s", row.State, row.Reason)
		}
		if n := count(c.startedTasks(), "x.2", "z.1", "y.1"); n != 3 {
			t.Errorf("starts = %v, want x.2, y.1 and z.1", c.startedTasks())
		}
	})
}

func TestRetryTasksOfAFailedRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, mend := failing()
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "b", Seconds: 60}, spec{ID: "c", Seconds: 60},
			spec{ID: "after", Seconds: 60, After: []string{"b"}})})
		row = w.awaitOver(row.ID)
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"after"}); corral.KindOf(err) != corral.Conflict {
			t.Errorf("of a skipped task: %v, want a conflict", err)
		}
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"q"}); corral.KindOf(err) != corral.NotFound {
			t.Errorf("of no task: %v, want it not found", err)
		}
		mend()
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"b"}); err != nil {
			t.Fatal(err)
		}
		row = w.awaitOver(row.ID)
		want := []corral.TaskState{corral.TaskDone, corral.TaskFailed, corral.TaskDone}
		if got := w.states(row.ID); !slices.Equal(got, want) || row.State != corral.RunFailed {
			t.Errorf("run is %s, tasks %v, want it FAILED, and %v", row.State, got, want)
		}
		if _, err := w.manager.RetryTasks(asLocal(t), "ann", row.ID, []string{"b"}); corral.KindOf(err) != corral.Conflict {
			t.Errorf("of a done task: %v, want a conflict", err)
		}
	})
}

// TestCancelledTaskStaysSo: corrald is killed after writing the record, before the cluster has cancelled the task.
func TestCancelledTaskStaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, _ := failing()
		w := newWorld(t, c)
		row := w.create(api.NewRun{Workflow: document(spec{ID: "a", Seconds: 60}, spec{ID: "x", Seconds: 60})})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Running == 2 })
		if _, err := w.manager.CancelTasks(asLocal(t), "ann", row.ID, []string{"x"}); err != nil {
			t.Fatal(err)
		}
		w.stop()
		w.start()
		defer func() { w.stop() }()
		row = w.awaitOver(row.ID)
		if want := []corral.TaskState{corral.TaskDone, corral.TaskFailed}; !slices.Equal(w.states(row.ID), want) {
			t.Errorf("tasks are %v, want %v", w.states(row.ID), want)
		}
	})
}
