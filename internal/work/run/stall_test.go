package run

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

func TestStalls(t *testing.T) {
	minute := execution.Capacity{CPUs: 1, MemoryMiB: 4096, Left: time.Minute}
	brief := execution.Capacity{CPUs: 1, MemoryMiB: 4096, Left: 50 * time.Second}
	tests := []struct {
		name     string
		workers  []*simWorker
		extra    []execution.Capacity
		task     spec
		sentence string
	}{
		{"no worker", nil, nil, spec{ID: "one"},
			"task one needs a worker; the cluster has none and none is requested"},
		{"memory", []*simWorker{oneWorker()}, nil, spec{ID: "sort_3", MemoryMiB: 65536},
			"task sort_3 needs 65536 MiB; the largest worker here has 2048 MiB"},
		{"cpus", []*simWorker{oneWorker()}, nil, spec{ID: "wide", CPUs: 4},
			"task wide needs 4 cpus; the largest worker here has 1"},
		{"time", nil, []execution.Capacity{minute}, spec{ID: "long", Seconds: 90},
			"task long needs 1m30s; the worker requested that stays longest has 1m0s left"},
		{"the time that is usual", nil, []execution.Capacity{brief}, spec{ID: "any"},
			"task any needs 1m0s; the worker requested that stays longest has 50s left: the task gives no time, so the default of " +
				"--default-runtime holds; shorten it, give the task's own (`corral submit --time`), or ask for longer pilots"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newSimCluster(tt.workers...)
				c.extra = tt.extra
				w := newWorld(t, c)
				defer w.stop()
				began := time.Now()
				row := w.create(api.NewRun{Workflow: document(tt.task), Options: corral.RunOptions{Stall: s(60)}})
				w.await(row.ID, func(r corral.Run) bool { return r.State == corral.RunRunning && r.Reason == tt.sentence })
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the reason was shown after %s", took)
				}
				row = w.awaitOver(row.ID)
				if row.State != corral.RunStalled || row.Reason != tt.sentence {
					t.Errorf("run is %s: %q\nwant STALLED: %q", row.State, row.Reason, tt.sentence)
				}
				if took := time.Since(began); took < time.Minute || took > 62*time.Second {
					t.Errorf("stalled after %s, want a minute", took)
				}
			})
		})
	}
}

func TestStallClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster(oneWorker())
		w := newWorld(t, c)
		defer w.stop()
		began := time.Now()
		row := w.create(api.NewRun{Options: corral.RunOptions{Stall: s(60)}, Workflow: document(
			spec{ID: "huge", MemoryMiB: 1 << 20, Seconds: 500}, spec{ID: "fits", Seconds: 100}, spec{ID: "too", Seconds: 100})})
		row = w.awaitOver(row.ID)
		if took := time.Since(began); row.State != corral.RunStalled || took < 260*time.Second || took > 263*time.Second {
			t.Errorf("%s after %s, want STALLED 60s after the 200s of what could run", row.State, took)
		}
		if want := (corral.RunTasks{Total: 3, Ready: 1, Done: 2}); row.Tasks != want {
			t.Errorf("tasks = %+v, want %+v", row.Tasks, want)
		}
	})
}

func TestOfferEndsStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newSimCluster()
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "one", Seconds: 1}), Options: corral.RunOptions{Stall: s(60)}})
		timer := time.AfterFunc(50*time.Second, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.extra = []execution.Capacity{{CPUs: 1, MemoryMiB: 1, Left: time.Hour}}
		})
		defer timer.Stop()
		w.await(row.ID, func(r corral.Run) bool { return r.Reason != "" })
		w.await(row.ID, func(r corral.Run) bool { return r.Reason == "" })
		later := time.AfterFunc(10*time.Minute, func() { c.join(oneWorker()) })
		defer later.Stop()
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Errorf("run is %s: %s", row.State, row.Reason)
		}
	})
}

func TestTaskOnDrainingWorkerIsNoStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		worker := oneWorker()
		c := newSimCluster(worker)
		w := newWorld(t, c)
		defer w.stop()
		row := w.create(api.NewRun{Workflow: document(spec{ID: "long", Seconds: 1200}), Options: corral.RunOptions{Stall: s(60)}})
		w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Running == 1 })
		c.mu.Lock()
		worker.draining = true
		c.mu.Unlock()
		if row = w.awaitOver(row.ID); row.State != corral.RunSucceeded {
			t.Errorf("run is %s: %s", row.State, row.Reason)
		}
	})
}

// goneCluster is a cluster that was deleted.
type goneCluster struct{}

func (goneCluster) Queue(id corral.ClusterID, _ corral.RunOptions) (Dispatcher, error) {
	return nil, corral.Errorf(corral.NotFound, "no cluster %d", id)
}

func (goneCluster) Offer(_ context.Context, id corral.ClusterID) (execution.Offer, error) {
	return execution.Offer{}, corral.Errorf(corral.NotFound, "no cluster %d", id)
}

func TestClusterThatIsGoneStalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, goneCluster{})
		defer w.stop()
		row := w.awaitOver(w.create(api.NewRun{Workflow: document(fan(2, 1)...), Options: corral.RunOptions{Stall: s(60)}}).ID)
		if want := "no task can be queued: no cluster 1"; row.State != corral.RunStalled || row.Reason != want {
			t.Errorf("run is %s: %q, want STALLED: %q", row.State, row.Reason, want)
		}
	})
}

// A journal that cannot be written stops a run like a cluster without workers: the run reports this, continues when the
// disk has room again, and otherwise stalls.
func TestJournalThatTakesNothingStalls(t *testing.T) {
	for _, mended := range []bool{true, false} {
		t.Run(fmt.Sprintf("mended %v", mended), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer full.Close()
				c := newSimCluster(oneWorker())
				w := newWorld(t, c)
				defer w.stop()
				row := w.create(api.NewRun{Workflow: document(fan(2, 10)...), Options: corral.RunOptions{Stall: s(60)}})
				w.await(row.ID, func(r corral.Run) bool { return r.Tasks.Running == 1 })
				if err := w.manager.look(asLocal(t), row.ID, func(*state) {}); err != nil { // the run is open
					t.Fatal(err)
				}
				j := w.manager.driver(row.ID).sink.journal
				swap := func() {
					j.mu.Lock()
					defer j.mu.Unlock()
					j.file, full = full, j.file
				}
				swap()
				row = w.await(row.ID, func(r corral.Run) bool { return r.Reason != "" })
				if !strings.Contains(row.Reason, "journal: ") || !strings.Contains(row.Reason, "no space left") {
					t.Errorf("reason %q, want the journal's", row.Reason)
				}
				want := corral.RunStalled
				if mended {
					timer := time.AfterFunc(50*time.Second, swap)
					defer timer.Stop()
					want = corral.RunSucceeded
				}
				if row = w.awaitOver(row.ID); row.State != want {
					t.Errorf("run is %s: %s, want %s", row.State, row.Reason, want)
				}
			})
		})
	}
}
