package embedded_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

func TestSilentWorkerIsLostAfterLeaseAndMargin(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1)})
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

func TestWorkerThatReturnsInTimeContinues(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1), long(2)})
		a.take()
		a.Close()
		synctest.Wait()
		if w := s.d.Workers(); len(w) != 1 || w[0].Connected {
			t.Fatalf("Workers() = %+v, want one that is not connected", w)
		}
		pass(14 * time.Second)
		held := holds(1)
		held.Results = []wire.Report{result(1, 2)}
		b := s.enter("0", "i", held)
		if m := b.expect(wire.TypeAck); len(m.Numbers) != 1 {
			t.Errorf("acknowledged %v, want one result", m.Numbers)
		}
		b.beat(30 * time.Second)
		b.done(2, 1)
		b.expect(wire.TypeAck)
		s.finished(2)
		s.returned()
	})
}

func TestJobThatNeverArrivedIsAssignedAgain(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1)})
		a.take()
		a.Close()
		b := s.enter("0", "i", nil)
		if got := b.take(); len(got) != 1 || got[0] != 1 {
			t.Errorf("assigned %v, want job 1", got)
		}
		s.returned()
	})
}

func TestNewInstanceReturnsJobsOfTheOldOne(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "old", nil)
		s.d.Submit([]execution.Job{long(1)})
		a.take()
		b := s.enter("0", "new", nil)
		s.returned(returnedJob{1, true, ""})
		back := s.enter("0", "old", holds(1))
		if m := back.expect(wire.TypeRefuse); m.Kind != corral.Conflict {
			t.Errorf("the old instance is answered %+v, want a conflict", m)
		}
		b.beat(time.Second)
	})
}

func TestStaleResultIsAcknowledgedAndDropped(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.enter("0", "i", nil)
		s.d.Submit([]execution.Job{long(1)})
		a.take()
		pass(30 * time.Second)
		s.returned(returnedJob{1, true, ""})
		b := s.enter("0", "i", &wire.Message{Results: []wire.Report{result(1, 1)}})
		b.expect(wire.TypeAck)
		s.finished(0)
		if queued, held := load(s.d); queued+held != 0 {
			t.Errorf("%d jobs are queued and %d held, want that the stale result brings none back", queued, held)
		}
	})
}

func TestExpectedJobs(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.d.Expect(1, "tag/0", []execution.Job{long(1), long(2), long(3)})
		s.d.Expect(1, "tag/1", []execution.Job{long(4)})
		if w := s.d.Workers(); len(w) != 0 {
			t.Errorf("a worker that is only expected is listed: %+v", w)
		}
		pass(5 * time.Second)
		held := holds(1)
		held.Results = []wire.Report{result(9, 2)}
		a := s.enter("0", "i", held)
		a.expect(wire.TypeAck)
		s.finished(1)
		s.returned(returnedJob{3, true, ""})
		a.done(10, 1)
		a.expect(wire.TypeAck)
		s.finished(2)
		a.beat(20 * time.Second)
		s.returned(returnedJob{3, true, ""}, returnedJob{4, true, ""})
	})
}

func TestJobsMayBeExpectedAfterTheirWorkerRegistered(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		held := holds(1, 3)
		held.Results = []wire.Report{result(9, 2)}
		a := s.enter("0", "i", held)
		s.d.Expect(1, "tag/0", []execution.Job{long(1), long(2), long(4)})
		s.returned(returnedJob{4, true, ""})
		a.Send(&wire.Message{Type: wire.TypeResults, Results: []wire.Report{result(9, 2), result(10, 1)}})
		a.expect(wire.TypeAck)
		s.finished(2)
		pass(10 * time.Second)
		a.beat(9 * time.Second)
		if free := s.d.Workers()[0].Free(); free.CPUs != 3 || free.MemoryMiB != 3900 {
			t.Errorf("free: %s, want 3 cpus and 3900 MiB: the unclaimed job still runs", free)
		}
		pass(3 * time.Second)
		if m := a.expect(wire.TypeCancel); !cmp.Equal(m.Keys, keys(3)) {
			t.Errorf("cancelled %v, want job 3", m.Keys)
		}
		a.Send(&wire.Message{Type: wire.TypeReturned, Keys: keys(3)})
		synctest.Wait()
		if w := s.d.Workers(); w[0].CPUsFree != 4 {
			t.Errorf("free cpus = %d, want 4", w[0].CPUsFree)
		}
	})
}

// The connected workers of an attempt together have at most the attempt's CPUs. A worker whose CPUs are still held by
// another worker is asked to return later, and receives them when the other worker has left.
func TestWorkersShareTheCPUsOfTheirAttempt(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.gate.cpus = 7
		a := s.enter("0", "i", nil)
		s.enter("0", "i", nil).beat(time.Second) // the same worker over another connection
		b := s.enter("1", "i", nil)
		if m := b.expect(wire.TypeRefuse); m.Kind != corral.Unavailable || !strings.Contains(m.Reason, "other workers have 4 of the 7") {
			t.Errorf("the second worker is answered %+v, want that it comes again", m)
		}
		a.Close()
		s.enter("0", "i", nil).Send(&wire.Message{Type: wire.TypeBye})
		synctest.Wait()
		s.enter("1", "i", nil).beat(time.Second)
	})
}
