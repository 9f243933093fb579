// Package worker is the process on a node that runs the jobs of an embedded cluster.
//
// One goroutine, the main loop (worker.go), watches time: its end, its lease, heartbeats, results that were not
// acknowledged. Another (link.go) keeps a connection and does what messages say. Each job that runs has one more
// (work.go). They share what the worker has, under one lock: the jobs (jobs.go), the results (results.go), the lease
// (lease.go), and the connection. Whoever changes something that the main loop looks at rouses it.
//
// The lease counts from when a heartbeat was sent, not from when its answer came: the dispatcher counts from when it
// arrived, which is later, so the worker always gives up first. A job remembers that the lease under which it began has
// lapsed; a new lease does not let it publish.
//
// A worker comes to its end in phases. Draining, it takes nothing more and lets what runs go on; that ends when no job
// is left and every result is recorded. Leaving, it kills what runs, because it was asked to, its time is over, or it
// is not wanted. Jobs that have not started go back at once in either case.
//
// Where the run's directory is not seen, the files of a job travel over connections of their own (courier.go).
package worker

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

// A Config is what a worker needs to know.
type Config struct {
	ID         string   // TAG/HOSTINDEX: unique in the cluster
	Instance   string   // of this process and no other
	Holder     string   // the pilot process that started it
	Host       string   // for people; empty: as the machine calls itself
	Tag, Token string   // of the attempt
	Secret     string   // of the pilot process that started it
	Addresses  []string // unix:PATH, tls:HOST:PORT or relay:HOST:PORT, in the order to try
	CertDigest string   // sha256:HEX of the worker port's certificate, for tls addresses

	corral.Resources          // that its tasks may use at once; the disk is that of Scratch
	Devices          []string // the GPUs, by the names that CUDA_VISIBLE_DEVICES takes

	EndsIn  time.Duration // it has left by then, counted from the call of Run
	Scratch string        // a directory of this worker alone, for its tasks' TMPDIRs; empty: their own directories

	// Idle is called when the worker has registered and about every second from then on while it has
	// nothing to do, with how long that has been; and with 0 when it has something. Nil: nothing is called.
	Idle func(time.Duration)

	// Registered is called each time that a dispatcher has taken the worker in. Nil: nothing is called.
	Registered func()

	// Alone is how long it stays although no dispatcher answers: it leaves then, as drained, but not before its lease
	// is over. 0: it stays to its end.
	Alone time.Duration

	// Drain asks, when it is closed, to finish what runs and then leave. It may be nil.
	Drain <-chan struct{}
}

// A Reason says why a worker left.
type Reason string

const (
	Drained Reason = "drained" // it was asked to finish what ran
	Expired Reason = "expired" // its time was over
	Asked   Reason = "asked"   // it was asked to leave at once, or ctx ended
	Refused Reason = "refused" // the dispatcher does not want it; the error says why
)

const (
	lastAcks   = time.Second            // how long a worker that leaves waits for its last results to be recorded
	workerTick = 250 * time.Millisecond // at most, between two looks at clock and lease
	idleTick   = time.Second            // between two calls of Idle
)

// A phase says how a worker comes to its end.
type phase uint8

const (
	taking   phase = iota // jobs
	draining              // takes nothing more; what runs goes on
	leaving               // no task may start any more
)

// A worker has jobs, and the results that its dispatcher has not acknowledged.
type worker struct {
	lg       *slog.Logger
	cfg      Config
	exec     *executor.Executor
	cutAt    time.Time     // when what runs is killed
	asked    chan struct{} // holds a token when the dispatcher has asked to leave
	moved    chan struct{} // holds a token when there is something for the main loop to look at
	runners  sync.WaitGroup
	couriers couriers

	mu      sync.Mutex // guards what follows
	line    line
	lease   lease
	jobs    jobs
	results results
	idle    idleWatch
	phase   phase
}

// Run dials in and runs the tasks that it is given, until its time is over, it is asked to leave,
// or it is refused. When it returns nothing of it runs any more. The error is not nil only for
// Refused, and for a machine on which no task can run.
//
// Without its dispatcher it keeps its tasks for the lease, then kills them; it looks for a dispatcher
// until its end.
func Run(ctx context.Context, lg *slog.Logger, cfg Config) (Reason, error) {
	if cfg.Host == "" {
		cfg.Host, _ = os.Hostname() // a worker without it is as good
	}
	x, err := executor.New(cfg.ID, cfg.Host, cfg.Scratch)
	if err != nil {
		return Expired, err
	}
	x.MeasureBy(cgroup.Open("/"))
	defer x.Close()
	now := time.Now()
	cutAt := now.Add(matching.CutAfter(cfg.EndsIn))
	w := &worker{
		lg: lg.With("worker", cfg.ID), cfg: cfg, exec: x, cutAt: cutAt,
		asked: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		lease: lease{began: now}, idle: idleWatch{since: now},
		jobs: jobs{
			all:  map[execution.Key]*work{},
			room: matching.Room{Host: cfg.Resources, CutAt: cutAt}, gpus: cfg.Devices,
		},
		results: results{unacked: map[int64]*unacked{}},
	}
	w.couriers.lg, w.couriers.dial = w.lg, w.dial
	defer w.couriers.close()
	if cfg.Scratch != "" {
		sweepLoads(cfg.Scratch)
	}
	return w.run(ctx)
}

// run is the main loop. The connection outlives ctx: when the worker is asked to leave there is still something to say.
// It ends with unlink, after leave has said good-bye.
func (w *worker) run(ctx context.Context) (Reason, error) {
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	refused := make(chan error, 1)
	var link sync.WaitGroup
	link.Go(func() { w.keepConnected(linked, refused) })
	defer link.Wait()
	defer unlink()
	end := time.NewTimer(time.Until(w.cutAt))
	defer end.Stop()
	tick := time.NewTicker(workerTick)
	defer tick.Stop()
	for drain := w.cfg.Drain; ; {
		select {
		case <-ctx.Done():
			return w.leave(Asked), nil
		case <-w.asked:
			return w.leave(Asked), nil
		case <-end.C:
			return w.leave(Expired), nil
		case err := <-refused:
			w.leave(Refused)
			return Refused, err
		case <-drain:
			drain = nil
			w.mu.Lock()
			w.drainLocked("asked by its pilot")
			w.mu.Unlock()
		case <-w.moved:
		case <-tick.C:
		}
		if w.step(time.Now(), tick) {
			return w.leave(Drained), nil
		}
	}
}

// step does what is due at now; it reports whether the worker has drained.
func (w *worker) step(now time.Time, tick *time.Ticker) (drained bool) {
	w.mu.Lock()
	tick.Reset(w.lease.tick())
	if w.line.conn != nil && w.lease.beatDue(now) {
		w.line.send(w.lease.beat(now))
	}
	if w.lease.over(now) {
		w.expireLocked()
	}
	if w.line.registered && w.results.late(now, 2*w.lease.terms.Heartbeat) {
		w.line.sendResults(w.results.all(now))
	}
	drained = w.phase != taking && len(w.jobs.all) == 0 && len(w.results.unacked) == 0 ||
		w.cfg.Alone > 0 && w.lease.silent(now) > max(w.cfg.Alone, w.lease.terms.Lease)
	var idle time.Duration
	var tell bool
	if w.line.registered {
		idle, tell = w.idle.look(now, len(w.jobs.all))
	}
	w.mu.Unlock()
	if tell && w.cfg.Idle != nil {
		w.cfg.Idle(idle)
	}
	return drained
}

// expireLocked gives up everything, as the dispatcher soon will: the lease is over. What waits is forgotten without a
// word, because no connection is there; what runs is killed and may not publish. The worker itself stays and goes on
// looking for a dispatcher.
func (w *worker) expireLocked() {
	if w.line.conn != nil {
		_ = w.line.conn.Net.Close() // silent for so long: another connection may work
	}
	w.jobs.giveUp(w.jobs.waiting)
	for _, k := range w.jobs.all {
		k.lapsed = true
	}
	if len(w.jobs.all) > 0 {
		w.lg.Warn("lease is over: killing tasks", "jobs", len(w.jobs.all))
	}
	w.killLocked(execution.Cut, executor.ErrStale.Error())
}

// killLocked ends what runs, and every job with it.
func (w *worker) killLocked(cause execution.Status, why string) {
	for _, k := range w.jobs.all {
		k.stopLocked(cause, why)
	}
}

// drainLocked takes nothing more and hands back what has not started.
func (w *worker) drainLocked(reason string) {
	if w.phase != taking {
		return
	}
	w.phase = draining
	w.line.send(&wire.Message{Type: wire.TypeDraining, Reason: reason})
	w.handBackLocked(w.jobs.waiting, "its worker leaves")
	w.rouse()
}

// leave kills what runs, tells the dispatcher, and waits until nothing is left. The last results have lastAcks to be
// recorded; without that the tasks would be done again. The bye ends the lease at once.
func (w *worker) leave(reason Reason) Reason {
	w.lg.Info("leaving", "reason", reason)
	w.mu.Lock()
	w.drainLocked("leaving: " + string(reason))
	w.phase = leaving
	w.killLocked(execution.Cut, "its worker had to leave: "+string(reason))
	w.mu.Unlock()
	w.runners.Wait()
	patience := time.NewTimer(lastAcks)
	defer patience.Stop()
	for w.unsettled() {
		select {
		case <-w.moved:
			continue
		case <-patience.C:
		}
		break
	}
	w.mu.Lock()
	c := w.line.conn
	w.line.send(&wire.Message{Type: wire.TypeBye, Reason: string(reason)})
	w.mu.Unlock()
	if c != nil {
		c.Finish()
	}
	return reason
}

// unsettled reports whether there are results that may still be acknowledged.
func (w *worker) unsettled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushLocked()
	return w.line.conn != nil && len(w.results.unacked) > 0
}

// rouse has the main loop look again.
func (w *worker) rouse() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}
