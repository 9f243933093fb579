//go:build sites

package condorpool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// TestLifeOfAPool tests the main path: a pool is created for a row, an attempt's worker joins and runs a job, the pool
// is stopped and started again with its queue, and it is removed without leaving anything behind.
func TestLifeOfAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := time.Now()
	c := w.ready("mine")
	t.Logf("READY after %v", time.Since(from).Round(time.Millisecond))
	if c.Collector == "" || c.Version != "23.9.6" || c.HTCondor != release || c.Reason != "" {
		t.Errorf("cluster = %+v", c)
	}
	if h := w.history(c.ID); !slices.ContainsFunc(h, func(e corral.Entry) bool { return e.Event == "pool" && strings.Contains(e.Reason, c.Collector) }) {
		t.Errorf("history = %+v, want a line about the pool", h)
	}

	j := w.attempt(c, 1, 2)
	secret, _, err := w.keepers.Mint(t.Context(), c.ID, j.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	from = time.Now()
	leave := w.glidein(c, j, secret, nil)
	var workers []corral.Worker
	w.eventually("a worker", func() bool {
		workers = w.keepers.Workers(c.ID)
		return len(workers) == 1
	})
	t.Logf("a worker after %v", time.Since(from).Round(time.Millisecond))
	got := workers[0]
	if got.ID != j.Tag+"/0" || got.Attempt != j.ID || got.Glidein != j.Glidein || got.Cluster != c.ID || got.Host != "node1" ||
		got.CPUs != 2 || got.CPUsFree != 2 || got.MemoryMiB != 200 || !got.Connected || got.Draining || got.EndsAt.IsZero() {
		t.Errorf("worker = %+v", got)
	}
	from = time.Now()
	job := w.submit(c)
	w.eventually("end of the job", func() bool { return w.queued(c, job) == 0 })
	t.Logf("a job took %v", time.Since(from).Round(time.Millisecond))
	leave()

	kept := w.submit(c)
	w.move(c.ID, corral.ClusterStop)
	w.await(c.ID, corral.ClusterStopped)
	if left := daemons(w.dir); len(left) > 0 {
		t.Errorf("a stopped pool has processes %v", left)
	}
	if _, _, err := w.keepers.Mint(t.Context(), c.ID, j.ID, time.Hour); corral.KindOf(err) != corral.Conflict {
		t.Errorf("Mint() of a stopped cluster: %v, want a conflict", err)
	}
	w.move(c.ID, corral.ClusterStart)
	again := w.await(c.ID, corral.ClusterReady)
	if again.Collector != c.Collector {
		t.Errorf("collector %s after a restart, want %s", again.Collector, c.Collector)
	}
	if n := w.queued(c, kept); n != 1 {
		t.Errorf("%d jobs in the queue after a restart, want 1", n)
	}
	w.write(func(tx *store.Tx) error { return force(tx, c.ID) })
	w.await(c.ID, corral.ClusterDeleted)
	if _, err := os.Stat(filepath.Join(w.dir, "clusters", "1")); !os.IsNotExist(err) {
		t.Errorf("the folder of a removed cluster: %v", err)
	}
}
