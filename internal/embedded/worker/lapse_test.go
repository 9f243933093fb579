package worker

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// newWorker returns a worker without a running loop that has a running job.
func newWorker(t *testing.T) (*worker, *work) {
	w := &worker{
		lg: slog.New(slog.DiscardHandler), cfg: Config{ID: "tag/0", Resources: corral.Resources{CPUs: 1, MemoryMiB: 1000}},
		lease: lease{began: time.Now()}, moved: make(chan struct{}, 1),
		jobs: jobs{all: map[execution.Key]*work{}}, results: results{unacked: map[int64]*unacked{}},
	}
	k := &work{w: w, job: longJob(1)}
	w.jobs.add(k)
	w.jobs.start()
	return w, k
}

// dialled returns the greeting of a new connection; messages that are sent over it are discarded.
func dialled(t *testing.T) *wire.Greeting {
	ours, theirs := net.Pipe()
	far := wire.NewConn(theirs)
	go func() {
		for {
			if _, err := far.Recv(wire.MaxFrame); err != nil {
				return
			}
		}
	}()
	t.Cleanup(far.Close)
	return &wire.Greeting{Conn: wire.NewConn(ours), Terms: &wire.Welcome{LeaseMS: 15000, HeartbeatMS: 3000}, SentAt: time.Now()}
}

// A worker that was suspended for longer than its lease may have a new connection before it detects the suspension. The
// new lease does not cover the old jobs, which other workers may already run.
func TestNewLeaseDoesNotCoverOldJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, old := newWorker(t)
		attach := func() {
			g := dialled(t)
			w.attach(g)
			w.detach(g.Conn)
			g.Close()
		}
		attach()
		<-time.After(14 * time.Second)
		attach()
		if !old.mayPublish() {
			t.Error("a worker that came back in time may not publish")
		}
		<-time.After(16 * time.Second)
		attach()
		k := &work{w: w, job: longJob(2), running: true}
		if old.mayPublish() || !k.mayPublish() {
			t.Errorf("may publish what began before the lapse: %v, after it: %v", old.mayPublish(), k.mayPublish())
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

func longJob(seq int64) execution.Job {
	return execution.Job{Run: 1, Seq: seq, Dir: "/d", CPUs: 1, MemoryMiB: 100, Tasks: []execution.Task{{ID: "t", Estimate: time.Minute}}}
}

// A worker that receives no answer leaves when it has been alone for the permitted time.
func TestWorkerLeavesWhenItIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason, err := Run(t.Context(), slog.New(slog.DiscardHandler), Config{
			ID: "tag/0", Host: "n1", Addresses: []string{"none"}, EndsIn: time.Hour, Alone: time.Minute, Scratch: t.TempDir(),
			Resources: corral.Resources{CPUs: 1, MemoryMiB: 1000},
		})
		if reason != Drained || err != nil {
			t.Errorf("it left as %s, %v", reason, err)
		}
	})
}

// A worker keeps its jobs until its lease expires, even if the permitted time alone is shorter.
func TestWorkerIsNotAloneBeforeItsLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, k := newWorker(t)
		w.cfg.Alone = 5 * time.Second
		g := dialled(t)
		w.attach(g)
		w.detach(g.Conn)
		g.Close()
		tick := time.NewTicker(workerTick)
		defer tick.Stop()
		<-time.After(14 * time.Second)
		if w.step(time.Now(), tick) || k.cancelled {
			t.Error("it leaves before its lease is over")
		}
		<-time.After(2 * time.Second)
		if !w.step(time.Now(), tick) {
			t.Error("it stays, although it is alone")
		}
	})
}
