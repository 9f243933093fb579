package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/google/go-cmp/cmp"
)

func (w *world) newRun(dir string) corral.Run {
	return corral.Run{Owner: actor, Cluster: w.cluster.ID, Workflow: "lambda", Dir: dir}
}

func (w *world) createRun(r corral.Run) corral.Run {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) { r, err = tx.CreateRun(r); return err })
	return r
}

func TestRunKeepsAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.newRun("/runs/1")
	r.Options = corral.RunOptions{Clustering: "horizontal=4", Retries: 2, Stall: corral.Seconds(5 * time.Minute),
		DefaultRuntime: corral.Seconds(1500 * time.Millisecond)}
	r.Labels = map[string]string{"team": "seismo"}
	r.Tasks = corral.RunTasks{Total: 21, Waiting: 1, Ready: 2, Running: 3, Done: 4, Failed: 5, Skipped: 6}
	r = w.createRun(r)
	report := corral.RunReport{Makespan: corral.Seconds(time.Minute), CPUs: 2, Parallelism: 1.5, Requeued: 3}
	tasks := corral.RunTasks{Total: 21, Done: 21}
	w.write(func(tx *store.Tx) (err error) {
		if _, err = tx.MoveRun(r.ID, corral.RunSucceed, "all tasks succeeded"); err != nil {
			return err
		}
		r, err = tx.SetRun(r.ID, tasks, &report)
		return err
	})
	if r.State != corral.RunSucceeded || r.ClusterName != "default" || r.EndedAt.IsZero() || r.Tasks != tasks || !cmp.Equal(*r.Report, report) {
		t.Errorf("run %+v", r)
	}
	w.view(func(tx *store.Tx) error {
		got, err := tx.Run(r.ID)
		if diff := cmp.Diff(r, got); diff != "" || err != nil {
			t.Errorf("Run: %v %s", err, diff)
		}
		return nil
	})
}

func TestRunMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.createRun(w.newRun("/runs/1"))
	w.refused(corral.Conflict, func(tx *store.Tx) error { // too early
		_, err := tx.SetRun(r.ID, r.Tasks, &corral.RunReport{})
		return err
	})
	w.write(func(tx *store.Tx) (err error) {
		for _, move := range []corral.RunMove{corral.RunFail, corral.RunResume, corral.RunCancel, corral.RunCancelEnd} {
			if r, err = tx.MoveRun(r.ID, move, "as asked"); err != nil {
				return err
			}
		}
		if _, err = tx.SetRun(r.ID, r.Tasks, &corral.RunReport{CPUs: 1}); err != nil {
			return err
		}
		if r, err = tx.SetRun(r.ID, r.Tasks, nil); err != nil || r.Report == nil {
			t.Errorf("no report, no news: report = %v, %v", r.Report, err)
		}
		r, err = tx.MoveRun(r.ID, corral.RunResume, "again")
		return err
	})
	if r.State != corral.RunRunning || !r.EndedAt.IsZero() || r.Report != nil {
		t.Errorf("resumed run %+v", r)
	}
	w.refused(corral.Conflict, func(tx *store.Tx) error { _, err := tx.MoveRun(r.ID, corral.RunRemove, ""); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.MoveRun(99, corral.RunFail, ""); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.SetRun(99, corral.RunTasks{}, nil); return err })
	want := "create >RUNNING, fail RUNNING>FAILED, resume FAILED>RUNNING, cancel RUNNING>CANCELLING, " +
		"cancelled CANCELLING>CANCELLED, resume CANCELLED>RUNNING"
	if got := w.story(corral.ObjectRun, int64(r.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestNoteRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.createRun(w.newRun("/runs/1"))
	note := func(reason string) func(*store.Tx) error {
		return func(tx *store.Tx) (err error) { r, err = tx.NoteRun(1, reason); return err }
	}
	for _, reason := range []string{"no worker has 8 GiB", ""} {
		if w.write(note(reason)); r.Reason != reason || r.State != corral.RunRunning {
			t.Errorf("noted %+v", r)
		}
	}
	if got, want := w.story(corral.ObjectRun, 1), "create >RUNNING"; got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
	w.write(func(tx *store.Tx) error { _, err := tx.MoveRun(1, corral.RunFail, "task a failed"); return err })
	w.refused(corral.Conflict, note("too late"))
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.NoteRun(99, ""); return err })
}

func TestRunDirectoryBelongsToOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.createRun(w.newRun("/runs/1"))
	again := func(tx *store.Tx) error { _, err := tx.CreateRun(w.newRun("/runs/1")); return err }
	w.refused(corral.Conflict, again)
	w.write(func(tx *store.Tx) error {
		if _, err := tx.MoveRun(r.ID, corral.RunFail, ""); err != nil {
			return err
		}
		_, err := tx.MoveRun(r.ID, corral.RunRemove, "")
		return err
	})
	w.write(again)
}

func TestRunsFilter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []corral.RunID
	for i, move := range []corral.RunMove{"", corral.RunSucceed, corral.RunFail, corral.RunRemove} {
		r := w.newRun(fmt.Sprint("/runs/", i))
		r.Labels = map[string]string{"n": fmt.Sprint(i % 2)}
		r = w.createRun(r)
		ids = append(ids, r.ID)
		w.write(func(tx *store.Tx) (err error) {
			if move == corral.RunRemove {
				_, err = tx.MoveRun(r.ID, corral.RunFail, "")
			}
			if move != "" && err == nil {
				_, err = tx.MoveRun(r.ID, move, "")
			}
			return err
		})
	}
	for _, c := range []struct {
		name   string
		filter store.RunFilter
		want   []corral.RunID
	}{
		{"zero", store.RunFilter{}, ids[:3]},
		{"all", store.RunFilter{Filter: store.Filter{All: true}}, ids},
		{"states", store.RunFilter{States: []corral.RunState{corral.RunFailed, corral.RunRunning}}, []corral.RunID{ids[0], ids[2]}},
		{"cluster", store.RunFilter{Cluster: 99}, nil},
		{"labels", store.RunFilter{Labels: map[string]string{"n": "1"}}, []corral.RunID{ids[1]}},
		{"page", store.RunFilter{Filter: store.Filter{Page: store.Page{After: int64(ids[0]), Limit: 1}}}, []corral.RunID{ids[1]}},
	} {
		w.view(func(tx *store.Tx) error {
			list, err := tx.Runs(c.filter)
			var got []corral.RunID
			for _, r := range list {
				got = append(got, r.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			return err
		})
	}
}

// TestLearnedRuns: only the latest runs of the workflow that learned memory are listed, without DELETED ones.
func TestLearnedRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	over := func(k int, workflow string, learned ...corral.LearnedMemory) corral.RunID {
		r := w.newRun(fmt.Sprintf("/runs/%d", k))
		r.Workflow = workflow
		r = w.createRun(r)
		w.write(func(tx *store.Tx) error {
			_, err := tx.MoveRun(r.ID, corral.RunSucceed, "all tasks succeeded")
			if err == nil {
				_, err = tx.SetRun(r.ID, r.Tasks, &corral.RunReport{CPUs: 2, LearnedMemory: learned})
			}
			return err
		})
		return r.ID
	}
	some := corral.LearnedMemory{Transformation: "t", MemoryMiB: 300}
	var want []corral.RunID
	for k := range 6 {
		want = append(want, over(k, "w", some))
	}
	over(6, "other", some)
	over(7, "w")
	w.write(func(tx *store.Tx) error {
		_, err := tx.MoveRun(want[4], corral.RunRemove, "not wanted")
		return err
	})
	w.view(func(tx *store.Tx) error {
		rows, err := tx.LearnedRuns(actor, "w", 3)
		var got []corral.RunID
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if diff := cmp.Diff([]corral.RunID{want[2], want[3], want[5]}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		return nil
	})
}
