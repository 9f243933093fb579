package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// Tests of broken connections and lapsed leases.

// cut breaks the worker's connection and prevents a new one until mend is called.
func (c *cluster) cut(t *testing.T) (mend func()) {
	t.Helper()
	hidden := c.socket + ".hidden"
	if err := os.Rename(c.socket, hidden); err != nil {
		t.Fatal(err)
	}
	c.taps.closeAll()
	return func() {
		if err := os.Rename(hidden, c.socket); err != nil {
			t.Fatal(err)
		}
	}
}

// A clustered job is stopped halfway while its worker has no connection. Its other tasks would never run if the worker
// did not return them when it reconnects.
func TestClusteredJobStoppedWithoutConnection(t *testing.T) {
	t.Parallel()
	for lease := 400 * time.Millisecond; !stopsWithoutConnection(t, lease); lease *= 4 { // longer on a busy machine
		t.Logf("the lease of %v was over before the task had begun", lease)
	}
}

// stopsWithoutConnection reports whether the lease lasted until the job's first task had begun.
func stopsWithoutConnection(t *testing.T, lease time.Duration) bool {
	t.Helper()
	b := newBed(t, dispatch.Config{Lease: lease, Margin: time.Minute}, nil)
	j := sh(1, b.dir, "echo $$ > ../../data/pid; sleep 69")
	j.Tasks = append(j.Tasks, shTask(2, "true"), shTask(3, "true"))
	b.d.Submit([]execution.Job{j})
	pid := b.pidUnlessOver(t)
	if pid == "" {
		return false
	}
	mend := b.cut(t)
	awaitDeath(t, pid)
	mend()
	await(t, "the other tasks' return", func() bool { _, r := b.sink.seen(); return len(r) == 1 })
	results, returned := b.sink.seen()
	if len(results) != 1 || results[0].Status != execution.Cut || returned[0].Seq != 1 || returned[0].Started {
		t.Errorf("results = %+v, returned = %+v: want one cut, the others not started", results, returned)
	}
	await(t, "the job to be forgotten", b.idle)
	return true
}

// over reports whether the end of a job has been reported to the sink.
func (b *bed) over() bool {
	results, returned := b.sink.seen()
	return len(results)+len(returned) > 0
}

// pidUnlessOver is awaitPID for a job that may end before it writes its process id; then it returns "".
func (b *bed) pidUnlessOver(t *testing.T) (pid string) {
	t.Helper()
	await(t, "the task to start, or to end", func() bool {
		content, _ := os.ReadFile(filepath.Join(b.dir, executor.DataDir, "pid"))
		pid = strings.TrimSpace(string(content))
		return pid != "" || b.over()
	})
	return pid
}

// If a run ended and was resumed, a job of the run at a worker without a connection may still be running.
func TestKilledJobIsNotReturnedBeforeItsWorker(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2)})
		a.take()
		a.Close()
		synctest.Wait()
		s.d.Detach(1)
		s.d.Attach(1, s.sink)
		s.d.Expect(1, "tag/0", []execution.Job{long(1), long(2)})
		s.returned()
		b := s.enter("0", "i", holds(1, 2))
		if m := b.expect(wire.TypeCancel); len(m.Keys) != 2 {
			t.Errorf("cancelled %v, want two jobs", m.Keys)
		}
		b.Send(&wire.Message{Type: wire.TypeReturned, Keys: keys(1)})
		b.done(1, 2)
		b.expect(wire.TypeAck)
		s.returned(returnedJob{1, false, ""})
		s.finished(1)
	})
}

// slowGate delays its answers.
type slowGate struct {
	*openGate
	takes time.Duration
}

func (g slowGate) Admit(ctx context.Context, c port.Credentials) (port.Admission, error) {
	pass(g.takes)
	return g.openGate.Admit(ctx, c)
}

// A worker's remaining time also decreases while it is being admitted.
func TestTimeLeftCountsFromTheHello(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.door = open(s.ctx, port.New(testLog(t), slowGate{s.gate, 5 * time.Second}, nil))
		s.d.Submit([]execution.Job{long(1), long(2)})
		j := long(3)
		j.Tasks[0].Estimate = time.Hour - 3*time.Second
		s.d.Submit([]execution.Job{j})
		a := s.enter("0", "i", nil)
		if got := a.take(); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("assigned %v, want the two jobs that can end in time", got)
		}
	})
}

func TestDetachAfterClose(t *testing.T) {
	t.Parallel()
	d := dispatch.New(testLog(t), dispatch.Config{})
	d.Attach(1, newRecorder())
	d.Close()
	d.Detach(1)
	d.Close()
}
