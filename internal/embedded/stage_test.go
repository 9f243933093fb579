package embedded_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// A stage is a dispatcher in a bubble of fake time, with scripted workers.
type stage struct {
	t    *testing.T
	d    *dispatch.Dispatcher
	gate *openGate
	door *doorway
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

// open starts a dispatcher like corrald.
func (s *stage) open() {
	lg := slog.New(slog.DiscardHandler)
	s.gate = newGate(lg, dispatch.Config{})
	s.d = s.gate.d
	s.door = open(s.ctx, port.New(lg, s.gate, nil))
	s.d.Attach(1, s.sink)
}

// empty checks that no job is left, neither queued nor at the single worker of four CPUs.
func (s *stage) empty() {
	s.t.Helper()
	queued, held := load(s.d)
	if w := s.d.Workers(); queued != 0 || held != 0 || len(w) != 1 || w[0].CPUsFree != 4 {
		s.t.Errorf("%d jobs are queued, %d held, workers %+v: want nothing left", queued, held, w)
	}
}

// An actor plays a worker.
type actor struct {
	*wire.Conn
	t *testing.T
}

// enter dials in as a worker of four CPUs, and reports the jobs that it holds.
func (s *stage) enter(id, instance string, held *wire.Message) *actor {
	s.t.Helper()
	a := s.greet(&wire.Hello{
		Version: wire.Version, Role: wire.RoleWorker, Tag: "tag", Token: testToken, ID: "tag/" + id, Instance: instance,
		Holder: "pilot", CPUs: 4, MemoryMiB: 4000, LeftMS: time.Hour.Milliseconds(),
	})
	a.expect(wire.TypeWelcome)
	if held == nil {
		held = &wire.Message{}
	}
	held.Type = wire.TypeHeld
	a.Send(held)
	synctest.Wait()
	return a
}

func (s *stage) greet(h *wire.Hello) *actor {
	ours, theirs := net.Pipe()
	s.door.conns <- theirs
	a := &actor{wire.NewConn(ours), s.t}
	s.t.Cleanup(a.Close)
	a.Send(&wire.Message{Type: wire.TypeHello, Hello: h})
	return a
}

// expect returns the next message, which must have this type.
func (a *actor) expect(kind string) *wire.Message {
	a.t.Helper()
	_ = a.Net.SetReadDeadline(time.Now().Add(time.Minute))
	m, err := a.Recv(wire.MaxFrame)
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
	for _, j := range a.expect(wire.TypeAssign).Jobs {
		seqs = append(seqs, j.Seq)
	}
	return seqs
}

// beat keeps the lease alive for d.
func (a *actor) beat(d time.Duration) {
	a.t.Helper()
	for range int(d / time.Second) {
		pass(time.Second)
		a.Send(&wire.Message{Type: wire.TypeHeartbeat, N: 7})
		if m := a.expect(wire.TypePong); m.N != 7 {
			a.t.Fatalf("pong has n %d, want 7", m.N)
		}
	}
}

func (a *actor) done(n, seq int64) {
	a.Send(&wire.Message{Type: wire.TypeResults, Results: []wire.Report{result(n, seq)}})
}

func result(n, seq int64) wire.Report {
	return wire.Report{N: n, Result: execution.Result{Key: execution.Key{Run: 1, Seq: seq}, Index: int(seq), Attempt: 1, Status: execution.Done}}
}

func long(seq int64) execution.Job {
	j := sh(seq, "/d", "x")
	j.Tasks[0].Estimate = time.Minute
	return j
}

func holds(seqs ...int64) *wire.Message {
	m := &wire.Message{}
	for _, k := range keys(seqs...) {
		m.Held = append(m.Held, wire.HeldJob{Key: k, Running: true, CPUs: 1, MemoryMiB: 100})
	}
	return m
}

// returned checks which jobs were returned to the sink.
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
