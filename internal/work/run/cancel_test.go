package run

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
)

// The run is cancelled between the reading of its row and the start of its driver.
func TestCancelBeforeDriverStarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer w.stop()
		synctest.Wait() // the manager has looked for runs to drive
		p, err := w.prepare(api.NewRun{Workflow: document(fan(3, 1)...)})
		if err != nil {
			t.Fatal(err)
		}
		var row corral.Run
		w.write(func(tx *store.Tx) error {
			row, err = p.Insert(tx, (*store.Tx).CreateRun)
			return err
		})
		if _, err := w.manager.Cancel(asLocal(t), "local", row.ID); err != nil {
			t.Fatal(err)
		}
		w.manager.start(row)
		row = w.awaitOver(row.ID)
		if started := c.startedTasks(); row.State != corral.RunCancelled || len(started) > 0 {
			t.Errorf("run is %s after it started %v", row.State, started)
		}
	})
}

// Tasks returned to a cancelled run are never released: the driver must not wait for their release time, which has
// passed.
func TestCancellingWaitsForWorkersOnly(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newState(mustPlan(t, mustOptions("none"), spec{ID: "one"}, spec{ID: "two"}))
	s.x.Release(now, execution.Offer{})
	s.x.Apply(execution.Record{Returned: &execution.Giveback{Seqs: []int64{1}}}) // only task one may be released
	d := &driver{queue: newSimCluster(), state: s, progress: &progress{}}
	d.scripts = newScripter(asLocal(t), s.plan, nil)
	d.progress.row.Tasks = s.x.Counts()
	d.watch.Judge(now.Add(-time.Hour), execution.Shortage{What: "nothing could run for an hour"})
	d.watch.Shortage = ""
	d.watch.Look(now)
	for _, tt := range []struct {
		state corral.RunState
		want  time.Duration
	}{{corral.RunRunning, 0}, {corral.RunCancelling, time.Second}} {
		if d.progress.row.State = tt.state; tt.state == corral.RunCancelling {
			d.stepCancelling(asLocal(t))
		}
		if got := max(0, d.next().Sub(now)); got != tt.want {
			t.Errorf("a %s run sleeps for %s, want %s", tt.state, got, tt.want)
		}
	}
}
