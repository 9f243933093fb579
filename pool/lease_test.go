package pool

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// A stage is a dispatcher in a bubble of fake time, with workers that are scripts.
type stage struct {
	t    *testing.T
	d    *Dispatcher
	port *Port
	sink *recorder
	ctx  context.Context
}

// onStage runs a script in a bubble.
func onStage(t *testing.T, script func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := &stage{t: t, ctx: ctx, sink: newRecorder()}
		s.open()
		defer func() { s.d.Close() }()
		script(t, s)
		if s.sink.overlap {
			t.Error("two calls of the sink at once")
		}
	})
}

// open starts a dispatcher, as corrald does.
func (s *stage) open() {
	lg := slog.New(slog.DiscardHandler)
	s.d = NewDispatcher(lg, Config{})
	s.port = NewPort(lg, &openGate{d: s.d, holders: map[corral.JobID]string{}})
	s.d.Attach(1, s.sink)
}

// An actor plays a worker.
type actor struct {
	*conn
	t *testing.T
}

// enter dials in as a worker of four cpus, and says what it holds.
func (s *stage) enter(id, instance string, held *message) *actor {
	s.t.Helper()
	a := s.greet(&hello{
		Version: Version, Role: RoleWorker, Tag: "tag", Token: testToken, ID: "tag/" + id, Instance: instance,
		Holder: "pilot", CPUs: 4, MemoryMiB: 4000, LeftMS: time.Hour.Milliseconds(),
	})
	a.expect(typeWelcome)
	if held == nil {
		held = &message{}
	}
	held.Type = typeHeld
	a.send(held)
	synctest.Wait()
	return a
}

func (s *stage) greet(h *hello) *actor {
	ours, theirs := net.Pipe()
	go s.port.serveConn(s.ctx, theirs)
	a := &actor{newConn(ours), s.t}
	s.t.Cleanup(a.close)
	a.send(&message{Type: typeHello, Hello: h})
	return a
}

// expect returns the next message, which must be of this type.
func (a *actor) expect(kind string) *message {
	a.t.Helper()
	_ = a.nc.SetReadDeadline(time.Now().Add(time.Minute))
	m, err := a.recv(maxFrame)
	if err != nil || m.Type != kind {
		a.t.Fatalf("got %+v, %v, want %s", m, err, kind)
	}
	return m
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.After(d) }

// take returns the numbers of the jobs in the next assignment.
func (a *actor) take() []int64 {
	a.t.Helper()
	var seqs []int64
	for _, j := range a.expect(typeAssign).Jobs {
		seqs = append(seqs, j.Seq)
	}
	return seqs
}

// beat keeps the lease for d.
func (a *actor) beat(d time.Duration) {
	a.t.Helper()
	for range int(d / time.Second) {
		pass(time.Second)
		a.send(&message{Type: typeHeartbeat, N: 7})
		if m := a.expect(typePong); m.N != 7 {
			a.t.Fatalf("pong has n %d, want 7", m.N)
		}
	}
}

func (a *actor) done(n, seq int64) {
	a.send(&message{Type: typeResults, Results: []report{result(n, seq)}})
}

func result(n, seq int64) report {
	return report{N: n, Result: Result{Key: Key{1, seq}, Index: int(seq), Attempt: 1, Status: Done}}
}

func long(seq int64) Job {
	j := sh(seq, "/d", "x")
	j.Tasks[0].Estimate = time.Minute
	return j
}

func holds(seqs ...int64) *message {
	m := &message{}
	for _, k := range keys(seqs...) {
		m.Held = append(m.Held, heldJob{k, true, 1, 100})
	}
	return m
}

// returned checks what the sink was given back.
func (s *stage) returned(want ...returnedJob) {
	s.t.Helper()
	synctest.Wait()
	_, got := s.sink.seen()
	for i := range got {
		got[i].Reason = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("returned jobs (-want +got):\n%s", diff)
	}
}

func (s *stage) finished(n int) {
	s.t.Helper()
	synctest.Wait()
	if got, _ := s.sink.seen(); len(got) != n {
		s.t.Fatalf("%d results are recorded, want %d", len(got), n)
	}
}

func TestSilentWorkerIsLostAfterLeaseAndMargin(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1)})
		a.take()
		a.beat(40 * time.Second)
		s.returned()
		pass(19 * time.Second)
		s.returned()
		pass(3 * time.Second)
		s.returned(returnedJob{1, true, ""})
		if w := s.d.Workers(); len(w) != 0 {
			t.Errorf("lost worker is still listed: %+v", w)
		}
	})
}

func TestWorkerThatComesBackInTimeGoesOn(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1), long(2)})
		a.take()
		a.close()
		synctest.Wait()
		if w := s.d.Workers(); len(w) != 1 || w[0].Connected {
			t.Fatalf("Workers() = %+v, want one that is not connected", w)
		}
		pass(14 * time.Second)
		held := holds(1)
		held.Results = []report{result(1, 2)}
		b := s.enter("0", "i", held)
		if m := b.expect(typeAck); len(m.Numbers) != 1 {
			t.Errorf("acknowledged %v, want one result", m.Numbers)
		}
		b.beat(30 * time.Second)
		b.done(2, 1)
		b.expect(typeAck)
		s.finished(2)
		s.returned()
	})
}

func TestJobThatNeverArrivedIsAssignedAgain(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1)})
		a.take()
		a.close()
		b := s.enter("0", "i", nil)
		if got := b.take(); len(got) != 1 || got[0] != 1 {
			t.Errorf("assigned %v, want job 1", got)
		}
		s.returned()
	})
}

func TestNewInstanceReturnsTheOldOnesJobs(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "old", nil)
		s.d.Submit([]Job{long(1)})
		a.take()
		b := s.enter("0", "new", nil)
		s.returned(returnedJob{1, true, ""})
		back := s.enter("0", "old", holds(1))
		if m := back.expect(typeRefuse); m.Kind != corral.Conflict {
			t.Errorf("the old instance is answered %+v, want a conflict", m)
		}
		b.beat(time.Second)
	})
}

func TestStaleResultIsAcknowledgedAndDropped(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1)})
		a.take()
		pass(30 * time.Second)
		s.returned(returnedJob{1, true, ""})
		b := s.enter("0", "i", &message{Results: []report{result(1, 1)}})
		b.expect(typeAck)
		s.finished(0)
		if s.d.Stats().Stale != 1 {
			t.Errorf("Stats() = %+v, want one stale result", s.d.Stats())
		}
	})
}

func TestExpectedJobs(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.d.Expect(1, "tag/0", []Job{long(1), long(2), long(3)})
		s.d.Expect(1, "tag/1", []Job{long(4)})
		if w := s.d.Workers(); len(w) != 0 {
			t.Errorf("a worker that is only expected is listed: %+v", w)
		}
		pass(5 * time.Second)
		held := holds(1)
		held.Results = []report{result(9, 2)}
		a := s.enter("0", "i", held)
		a.expect(typeAck)
		s.finished(1)
		s.returned(returnedJob{3, true, ""})
		a.done(10, 1)
		a.expect(typeAck)
		s.finished(2)
		a.beat(20 * time.Second)
		s.returned(returnedJob{3, true, ""}, returnedJob{4, true, ""})
	})
}

func TestJobsMayBeExpectedAfterTheirWorkerRegistered(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		held := holds(1, 3)
		held.Results = []report{result(9, 2)}
		a := s.enter("0", "i", held)
		s.d.Expect(1, "tag/0", []Job{long(1), long(2), long(4)})
		s.returned(returnedJob{4, true, ""})
		a.send(&message{Type: typeResults, Results: []report{result(9, 2), result(10, 1)}})
		a.expect(typeAck)
		s.finished(2)
		pass(10 * time.Second)
		a.beat(9 * time.Second)
		if w := s.d.Workers(); w[0].CPUsFree != 3 {
			t.Errorf("free cpus = %d, want 3: the job that nobody claimed still runs", w[0].CPUsFree)
		}
		pass(3 * time.Second)
		if m := a.expect(typeCancel); !cmp.Equal(m.Keys, keys(3)) {
			t.Errorf("cancelled %v, want job 3", m.Keys)
		}
		a.send(&message{Type: typeReturned, Keys: keys(3)})
		synctest.Wait()
		if w := s.d.Workers(); w[0].CPUsFree != 4 {
			t.Errorf("free cpus = %d, want 4", w[0].CPUsFree)
		}
	})
}

func TestSinkThatFails(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.sink.failNext(2)
		began := time.Now()
		s.d.Submit([]Job{long(1)})
		a.take()
		if took := time.Since(began); took < 2*sinkRest {
			t.Errorf("sent after %v, want two rests of %v", took, sinkRest)
		}
		s.sink.failNext(1)
		a.done(1, 1)
		a.beat(3 * time.Second)
		s.finished(0)
		a.done(1, 1)
		a.expect(typeAck)
		s.finished(1)
		s.returned()
	})
}

func TestSlowSinkDoesNotStopHeartbeats(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1)})
		a.take()
		s.sink.hold = make(chan struct{})
		a.done(1, 1)
		a.beat(60 * time.Second)
		close(s.sink.hold)
		a.expect(typeAck)
		s.finished(1)
	})
}

func TestCancelReturnsWhatIsQueuedAndKillsTheRest(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1), long(2), long(3), long(4), long(5)})
		a.take()
		s.d.Cancel(1)
		s.returned(returnedJob{5, false, ""})
		if m := a.expect(typeCancel); len(m.Keys) != 4 {
			t.Errorf("cancelled %v, want four jobs", m.Keys)
		}
		a.close()
		b := s.enter("0", "i", holds(1, 2, 3, 4))
		if m := b.expect(typeCancel); len(m.Keys) != 4 {
			t.Errorf("cancelled %v after the worker came back, want four jobs", m.Keys)
		}
		s.d.Submit([]Job{long(6)})
		b.done(1, 1)
		b.expect(typeAck)
		if got := b.take(); len(got) != 1 || got[0] != 6 {
			t.Errorf("assigned %v, want job 6 of the run's new life", got)
		}
	})
}

func TestDetachedRunIsForgotten(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1), long(2), long(3), long(4), long(5)})
		a.take()
		s.d.Detach(1)
		if m := a.expect(typeCancel); len(m.Keys) != 4 {
			t.Errorf("cancelled %v, want four jobs", m.Keys)
		}
		for seq := range int64(4) {
			a.done(seq+1, seq+1)
			a.expect(typeAck)
		}
		s.finished(0)
		s.returned()
		if st := s.d.Stats(); st.Queued != 0 || st.Held != 0 || st.CPUsFree != 4 {
			t.Errorf("Stats() = %+v, want nothing left", st)
		}
	})
}

func TestLeavingWorkerHandsBack(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]Job{long(1), long(2), long(3)})
		a.take()
		a.send(&message{Type: typeDraining})
		a.send(&message{Type: typeReturned, Keys: keys(2)})
		s.returned(returnedJob{2, false, ""})
		s.d.Submit([]Job{long(4)})
		a.done(1, 1)
		a.expect(typeAck)
		a.send(&message{Type: typeBye})
		s.returned(returnedJob{2, false, ""}, returnedJob{3, true, ""})
		if st := s.d.Stats(); st.Workers != 0 || st.Queued != 1 || st.Lost != 0 {
			t.Errorf("Stats() = %+v, want one job queued and no worker", st)
		}
	})
}

func TestJobsThatWaitTooLongAreRecalled(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		var jobs []Job
		for seq := range int64(12) {
			jobs = append(jobs, sh(seq, "/d", "x"))
			jobs[seq].Tasks[0].Estimate = time.Millisecond
		}
		s.d.Submit(jobs)
		if got := a.take(); len(got) != 12 {
			t.Fatalf("assigned %v, want all twelve: four run, eight wait", got)
		}
		b := s.enter("1", "i", nil)
		pass(2 * time.Second)
		m := a.expect(typeRecall)
		if len(m.Keys) != 8 {
			t.Fatalf("recalled %v, want eight jobs", m.Keys)
		}
		a.send(&message{Type: typeReturned, Keys: m.Keys})
		got := b.take()
		if len(got) != 8 {
			t.Errorf("the idle worker got %v, want the eight jobs", got)
		}
		s.returned()
		if w := s.sink.workersOf(got[0]); len(w) != 2 || w[1] != "tag/1" {
			t.Errorf("job was assigned to %v, want to tag/1 at last", w)
		}
	})
}

func TestCommandsAreRememberedForWhoComesBack(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Drain(1)
		a.expect(typeDrain)
		a.close()
		b := s.enter("0", "i", nil)
		b.expect(typeDrain)
		s.d.Submit([]Job{long(1)})
		s.d.Leave(1)
		b.expect(typeLeave)
		if w := s.sink.workersOf(1); len(w) != 0 {
			t.Errorf("a draining worker got a job")
		}
	})
}

func TestHandBackOfAClusteredJobKeepsItsResults(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		j := long(1)
		j.Tasks = append(j.Tasks, shTask(2, "x"), shTask(3, "x"))
		s.d.Submit([]Job{j})
		a.take()
		a.done(1, 1)
		a.expect(typeAck)
		a.send(&message{Type: typeReturned, Keys: keys(1)})
		s.returned(returnedJob{1, false, ""})
		s.finished(1)
	})
}

func TestJobTooLargeForAFrameFails(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		j := long(1)
		j.Tasks[0].Argv = append(j.Tasks[0].Argv, strings.Repeat("x", maxFrame))
		s.d.Submit([]Job{j, long(2)})
		if got := a.take(); len(got) != 1 || got[0] != 2 {
			t.Errorf("assigned %v, want job 2 only", got)
		}
		s.finished(1)
		if got, _ := s.sink.seen(); got[0].Status != Failed || got[0].Reason == "" {
			t.Errorf("result = %+v, want a failure with its reason", got[0])
		}
	})
}
