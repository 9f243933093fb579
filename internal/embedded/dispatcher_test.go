package embedded_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

func TestFailingSink(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.sink.failNext(2)
		began := time.Now()
		s.d.Submit([]execution.Job{long(1)})
		a.take()
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("sent after %v, want two rests of a second", took)
		}
		s.sink.failNext(1)
		a.done(1, 1)
		a.beat(3 * time.Second)
		s.finished(0)
		a.done(1, 1)
		a.expect(wire.TypeAck)
		s.finished(1)
		s.returned()
	})
}

func TestSlowSinkDoesNotStopHeartbeats(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1)})
		a.take()
		s.sink.hold = make(chan struct{})
		a.done(1, 1)
		a.beat(60 * time.Second)
		close(s.sink.hold)
		a.expect(wire.TypeAck)
		s.finished(1)
	})
}

func TestCancelReturnsQueuedJobsAndKillsTheRest(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2), long(3), long(4), long(5)})
		a.take()
		s.d.Cancel(1)
		s.returned(returnedJob{5, false, ""})
		if m := a.expect(wire.TypeCancel); len(m.Keys) != 4 {
			t.Errorf("cancelled %v, want four jobs", m.Keys)
		}
		a.Close()
		b := s.enter("0", "i", holds(1, 2, 3, 4))
		if m := b.expect(wire.TypeCancel); len(m.Keys) != 4 {
			t.Errorf("cancelled %v after the worker came back, want four jobs", m.Keys)
		}
		s.d.Submit([]execution.Job{long(6)})
		b.done(1, 1)
		b.expect(wire.TypeAck)
		if got := b.take(); len(got) != 1 || got[0] != 6 {
			t.Errorf("assigned %v, want job 6 of the run's new life", got)
		}
	})
}

func TestDetachedRunIsForgotten(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2), long(3), long(4), long(5)})
		a.take()
		s.d.Detach(1)
		if m := a.expect(wire.TypeCancel); len(m.Keys) != 4 {
			t.Errorf("cancelled %v, want four jobs", m.Keys)
		}
		for seq := range int64(4) {
			a.done(seq+1, seq+1)
			a.expect(wire.TypeAck)
		}
		s.finished(0)
		s.returned()
		s.empty()
	})
}

func TestLeavingWorkerReturnsJobs(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2), long(3)})
		a.take()
		a.Send(&wire.Message{Type: wire.TypeDraining})
		a.Send(&wire.Message{Type: wire.TypeReturned, Keys: keys(2)})
		s.returned(returnedJob{2, false, ""})
		s.d.Submit([]execution.Job{long(4)})
		a.done(1, 1)
		a.expect(wire.TypeAck)
		a.Send(&wire.Message{Type: wire.TypeBye})
		s.returned(returnedJob{2, false, ""}, returnedJob{3, true, ""})
		if queued, held := load(s.d); len(s.d.Workers()) != 0 || queued != 1 || held != 0 {
			t.Errorf("%d jobs are queued, %d held by %+v, want one job queued and no worker", queued, held, s.d.Workers())
		}
	})
}

func TestJobsThatWaitTooLongAreRecalled(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		var jobs []execution.Job
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
		m := a.expect(wire.TypeRecall)
		if len(m.Keys) != 8 {
			t.Fatalf("recalled %v, want eight jobs", m.Keys)
		}
		a.Send(&wire.Message{Type: wire.TypeReturned, Keys: m.Keys})
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

func TestCommandsAreRememberedForReturningWorkers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.gate.ask(corral.AskDrain)
		a.expect(wire.TypeDrain)
		a.Close()
		b := s.enter("0", "i", nil)
		b.expect(wire.TypeDrain)
		s.d.Submit([]execution.Job{long(1)})
		s.gate.ask(corral.AskCancel)
		b.expect(wire.TypeLeave)
		if w := s.sink.workersOf(1); len(w) != 0 {
			t.Errorf("a draining worker got a job")
		}
	})
}

func TestReturnedClusteredJobKeepsItsResults(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		j := long(1)
		j.Tasks = append(j.Tasks, shTask(2, "x"), shTask(3, "x"))
		s.d.Submit([]execution.Job{j})
		a.take()
		a.done(1, 1)
		a.expect(wire.TypeAck)
		a.Send(&wire.Message{Type: wire.TypeReturned, Keys: keys(1)})
		s.returned(returnedJob{1, false, ""})
		s.finished(1)
	})
}

func TestJobTooLargeForAFrameFails(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		j := long(1)
		j.Tasks[0].Argv = append(j.Tasks[0].Argv, strings.Repeat("x", wire.MaxFrame))
		s.d.Submit([]execution.Job{j, long(2)})
		if got := a.take(); len(got) != 1 || got[0] != 2 {
			t.Errorf("assigned %v, want job 2 only", got)
		}
		s.finished(1)
		if got, _ := s.sink.seen(); got[0].Status != execution.Failed || got[0].Reason == "" {
			t.Errorf("result = %+v, want a failure with its reason", got[0])
		}
	})
}

// A run may be detached between the recording and the sending of an assignment.
func TestDetachWhileJobsAreBeingAssigned(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.sink.failNext(1)
		s.d.Submit([]execution.Job{long(1)})
		synctest.Wait() // the sink has failed and receives no more calls
		s.d.Detach(1)
		a.beat(5 * time.Second)
		s.empty()
		s.d.Attach(1, s.sink)
		s.d.Submit([]execution.Job{long(2)})
		if got := a.take(); len(got) != 1 || got[0] != 2 {
			t.Errorf("assigned %v, want job 2 of the run's new life", got)
		}
	})
}
