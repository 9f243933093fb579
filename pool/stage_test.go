package pool

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
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
	return report{N: n, Result: execution.Result{Key: execution.Key{Run: 1, Seq: seq}, Index: int(seq), Attempt: 1, Status: execution.Done}}
}

func long(seq int64) execution.Job {
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
