package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// Jobs of a worker whose pilot has ended are returned immediately, regardless of the length of the lease, whether the
// worker is already disconnected, disconnects later, or was known only to an earlier corrald.
func TestJobsOfAnEndedPilot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{Lease: time.Hour, Heartbeat: time.Second})
	b := &bed{cluster: c, dir: runDir(t), sink: newRecorder()}
	c.d.Attach(1, b.sink)
	for round, soon := range []bool{true, false} {
		seq := int64(round + 1)
		tag := fmt.Sprintf("tag%d", round)
		cmd := c.child(t, tag+"/0")
		c.awaitWorkers(t, 1)
		j := sh(seq, b.dir, "echo $$ > ../../data/pid; sleep 66")
		c.d.Submit([]execution.Job{j})
		pid, began := b.awaitPID(t), time.Now()
		if soon {
			c.d.Ended(tag)
			if _, returned := b.sink.seen(); len(returned) != round {
				t.Error("a worker that is connected was given up")
			}
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if !soon {
			await(t, "the end of its connection", func() bool { w := c.d.Workers(); return len(w) == 1 && !w[0].Connected })
			c.d.Ended("tag") // belongs to another pilot
			c.d.Ended(tag)
		}
		await(t, "the job's return", func() bool { _, r := b.sink.seen(); return len(r) == round+1 })
		_, returned := b.sink.seen()
		if r := returned[round]; r.Seq != seq || !r.Started || r.Reason != "its pilot has ended, and its worker with it" {
			t.Errorf("returned %+v", r)
		}
		if gone := b.sink.lastUntil(); !gone.After(began) || gone.After(time.Now()) {
			t.Errorf("its worker was there until %s, want some time since %s", gone, began)
		}
		if w := c.d.Workers(); len(w) != 0 {
			t.Errorf("workers %+v are left", w)
		}
		awaitDeath(t, pid)
		if err := os.Remove(filepath.Join(b.dir, executor.DataDir, "pid")); err != nil {
			t.Fatal(err)
		}
	}
	c.d.Expect(1, "tag1/7", []execution.Job{sh(9, b.dir, "true")})
	await(t, "the return of what was expected", func() bool { _, r := b.sink.seen(); return len(r) == 3 && r[2].Seq == 9 && r[2].Started })
}
