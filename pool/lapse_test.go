package pool

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// Tests of what a connection that breaks, or a lease that lapses, must not do.

// cut breaks the worker's connection and keeps it from coming back until mend is called.
func (c *cluster) cut(t *testing.T) (mend func()) {
	t.Helper()
	hidden := c.socket + ".hidden"
	if err := os.Rename(c.socket, hidden); err != nil {
		t.Fatal(err)
	}
	c.d.mu.Lock()
	for _, m := range c.d.members {
		if m.session != nil {
			_ = m.session.nc.Close()
		}
	}
	c.d.mu.Unlock()
	return func() {
		if err := os.Rename(hidden, c.socket); err != nil {
			t.Fatal(err)
		}
	}
}

// A clustered job that was stopped half way while its worker had no connection: nobody would ever run
// its other tasks, had they not been handed back when the worker returned.
func TestClusteredJobStoppedWithoutConnection(t *testing.T) {
	t.Parallel()
	for lease := 400 * time.Millisecond; !stopsWithoutConnection(t, lease); lease *= 4 { // as a busy machine may need
		t.Logf("the lease of %v was over before the task had begun", lease)
	}
}

// stopsWithoutConnection reports whether the lease lasted until the job's first task had begun.
func stopsWithoutConnection(t *testing.T, lease time.Duration) bool {
	t.Helper()
	b := newBed(t, Config{Lease: lease, Margin: time.Minute}, nil)
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
	await(t, "the job to be forgotten", func() bool { return b.d.Stats().Held == 0 })
	return true
}

// over reports whether the sink has heard the end of a job.
func (b *bed) over() bool {
	results, returned := b.sink.seen()
	return len(results)+len(returned) > 0
}

// pidUnlessOver is awaitPID for a job that may end before it has told; then it returns "".
func (b *bed) pidUnlessOver(t *testing.T) (pid string) {
	t.Helper()
	await(t, "the task to start, or to end", func() bool {
		content, _ := os.ReadFile(filepath.Join(b.dir, dataDir, "pid"))
		pid = strings.TrimSpace(string(content))
		return pid != "" || b.over()
	})
	return pid
}

// newWorker returns a worker that nothing drives, with a job that runs.
func newWorker(t *testing.T) (*worker, *work) {
	w := &worker{
		lg: testLog(t), cfg: workerConfig("tag/0", ""), began: time.Now(),
		moved: make(chan struct{}, 1), jobs: map[execution.Key]*work{}, unacked: map[int64]*unacked{},
	}
	k := &work{job: long(1), running: true}
	w.jobs[k.job.Key()] = k
	return w, k
}

// dialled returns the greeting of a connection that was just made; what is sent over it goes nowhere.
func dialled(t *testing.T) *greeting {
	ours, theirs := net.Pipe()
	far := newConn(theirs)
	go func() {
		for {
			if _, err := far.recv(maxFrame); err != nil {
				return
			}
		}
	}()
	t.Cleanup(far.close)
	return &greeting{conn: newConn(ours), terms: &welcome{LeaseMS: 15000, HeartbeatMS: 3000}, sentAt: time.Now()}
}

// A worker that was stopped for longer than its lease may have a new connection before it notices. The
// new lease is not for the old jobs: others may be doing them.
func TestNewLeaseIsNotForJobsOfTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, old := newWorker(t)
		attach := func() {
			g := dialled(t)
			w.attach(g)
			w.detach(g.conn)
			g.close()
		}
		attach()
		pass(14 * time.Second)
		attach()
		if !w.mayPublish(old) {
			t.Error("a worker that came back in time may not publish")
		}
		pass(16 * time.Second)
		attach()
		k := &work{job: long(2), running: true}
		if w.mayPublish(old) || !w.mayPublish(k) {
			t.Errorf("may publish what began before the lapse: %v, after it: %v", w.mayPublish(old), w.mayPublish(k))
		}
		if !old.cancelled {
			t.Error("the job goes on")
		}
	})
}

func TestWorkerThatLeavesDropsANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorker(t)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- w.serve(ctx, dialled(t)) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-served:
		default:
			t.Error("it is still served")
		}
	})
}

// A job of a run that ended and was resumed, on a worker without connection: it may still be running.
func TestJobBeingKilledIsNotReturnedBeforeItsWorkerIsBack(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2)})
		a.take()
		a.close()
		synctest.Wait()
		s.d.Detach(1)
		s.d.Attach(1, s.sink)
		s.d.Expect(1, "tag/0", []execution.Job{long(1), long(2)})
		s.returned()
		b := s.enter("0", "i", holds(1, 2))
		if m := b.expect(typeCancel); len(m.Keys) != 2 {
			t.Errorf("cancelled %v, want two jobs", m.Keys)
		}
		b.send(&message{Type: typeReturned, Keys: keys(1)})
		b.done(1, 2)
		b.expect(typeAck)
		s.returned(returnedJob{1, false, ""})
		s.finished(1)
	})
}

// slowGate takes its time.
type slowGate struct {
	*openGate
	takes time.Duration
}

func (g slowGate) Admit(ctx context.Context, c Credentials) (Admission, error) {
	pass(g.takes)
	return g.openGate.Admit(ctx, c)
}

// The time that a worker has left runs while it is being admitted.
func TestTimeLeftCountsFromTheHello(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.port = NewPort(testLog(t), slowGate{s.port.gate.(*openGate), 5 * time.Second})
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
	d := NewDispatcher(testLog(t), Config{})
	d.Attach(1, newRecorder())
	d.Close()
	d.Detach(1)
	d.Close()
}

// Time in which corrald itself did not run, and so answered nobody, does not count against workers:
// they come back with what they have finished.
func TestDispatcherThatStoodStillLosesNobody(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1)})
		a.take()
		a.close()
		synctest.Wait()
		s.d.step(time.Now().Add(time.Minute))
		s.returned()
		b := s.enter("0", "i", &message{Results: []report{result(1, 1)}})
		b.expect(typeAck)
		s.finished(1)
	})
}
