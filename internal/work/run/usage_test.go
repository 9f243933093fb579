package run

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// crashes is the number of times that corrald dies during the run below.
const crashes = 200

// taken returns the stored usage of a run.
func (w *world) taken() (t store.Taken) {
	w.Helper()
	work, err := store.Read(asLocal(w), storetest.All(w.db), func(tx *store.Tx) ([]usage.Work, error) {
		return tx.Work(usage.NewWindow(time.Time{}, time.Time{}, tx.Now()))
	})
	if err != nil {
		w.Fatal(err)
	}
	for _, v := range work {
		t.Used += v.Used
		t.Lost += v.Lost
	}
	return t
}

// The usage of a run does not depend on when corrald dies: it includes each task once, with its failed attempts, and
// nothing twice. The store is reopened each time.
func TestUsageSurvivesCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const tasks, seconds, failing = 600, 10, 7
		c := newSimCluster(&simWorker{id: "w1", cpus: 2, memoryMiB: 2048}, &simWorker{id: "w2", cpus: 1, memoryMiB: 2048})
		c.run = func(k execution.Task) (execution.Status, time.Duration) {
			if k.Attempt == 1 && k.Index%failing == 0 {
				return execution.Failed, 4 * time.Second
			}
			return execution.Done, seconds * time.Second
		}
		w := newWorld(t, c)
		w.stop()
		path := filepath.Join(t.TempDir(), "corral.db")
		reopen := func() {
			db, err := store.Open(t.Context(), path)
			for corral.KindOf(err) == corral.Conflict { // a process that another test forks may hold the lock
				db, err = store.Open(t.Context(), path)
			}
			if err != nil {
				t.Fatal(err)
			}
			w.db = db
		}
		reopen()
		w.write(func(tx *store.Tx) error {
			cluster, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
			w.cluster = cluster.ID
			return err
		})
		w.start()
		row := w.create(api.NewRun{Workflow: document(fan(tasks, seconds)...), Options: corral.RunOptions{Retries: 1, Clustering: "none"}})
		chance := rand.New(rand.NewPCG(1, 2))
		var before store.Taken
		for range crashes {
			<-time.After(time.Duration(chance.IntN(15_000)) * time.Millisecond)
			w.stop()
			if err := w.db.Close(); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Duration(chance.IntN(5_000)) * time.Millisecond)
			reopen()
			// The usage of running tasks is known up to the last sample or, directly after a start, up to the end of
			// the journal.
			const late = 3 * usage.CoreTime(accountEvery/time.Millisecond)
			now := w.taken()
			most := 3 * usage.CoreTime(time.Since(row.CreatedAt).Milliseconds())
			if sum := now.Used + now.Lost; sum+late < before.Used+before.Lost || sum > most {
				t.Fatalf("%+v is taken after %s, was %+v; three cpus have %d", now, time.Since(row.CreatedAt), before, most)
			}
			before = now
			c.restart()
			w.start()
		}
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Fatalf("run is %s: %s", row.State, row.Reason)
		}
		w.stop()
		var want store.Taken
		for i := range tasks + 2 {
			want.Used += seconds * 1000
			if i%failing == 0 {
				want.Lost += 4000
			}
		}
		if got := w.taken(); got != want {
			t.Errorf("%+v is taken, want %+v", got, want)
		}
		if err := w.db.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
