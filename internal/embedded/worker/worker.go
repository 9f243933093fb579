// Package worker is the process on a node that runs the jobs of an embedded cluster.
//
// One goroutine, the main loop (worker.go), handles time: the worker's end, its lease, heartbeats, unacknowledged
// results. Another (link.go) keeps a connection and handles messages. Each running job has one more (work.go). They
// share the worker's state under one lock: the jobs (jobs.go), the results (results.go), the lease (lease.go), and the
// connection. Code that changes state that the main loop checks must rouse it.
//
// The lease counts from when a heartbeat was sent, not from when its answer arrived: the dispatcher counts from the
// heartbeat's arrival, which is later, so the worker always gives up first. A job records that the lease under which it
// began has ended; it may not publish under a new lease.
//
// A worker ends in phases. While draining, it accepts no more jobs and lets running jobs continue; this phase ends when
// no job is left and every result is recorded. While leaving, it kills the running jobs, because it was asked to leave,
// its time is over, or the dispatcher refuses it. In either case, jobs that have not started are returned at once.
//
// If the run's directory is not visible, the files of a job travel over separate connections (courier.go).
package worker

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/executor"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/cgroup"
)

// A Config configures a worker.
type Config struct {
	ID         string   // TAG/HOSTINDEX: unique in the cluster
	Instance   string   // identifies this process uniquely
	Holder     string   // the pilot process that started it
	Host       string   // for display; empty: the machine's own name
	Tag, Token string   // of the attempt
	Secret     string   // of the pilot process that started it
	Addresses  []string // unix:PATH, tls:HOST:PORT or relay:HOST:PORT, in the order to try
	CertDigest string   // sha256:HEX of the worker port's certificate, for tls addresses

	corral.Resources          // limits for its tasks together; the disk is that of Scratch
	Devices          []string // the GPUs, by the names used in CUDA_VISIBLE_DEVICES

	Speed corral.Speed // of the host, by which the estimates of tasks are divided

	EndsIn  time.Duration // it leaves within this time, counted from the call of Run
	Scratch string        // a directory used by this worker alone, for its tasks' TMPDIRs; empty: their own directories

	// Idle is called when the worker has registered, and then about every second while it is idle, with the duration so
	// far; and with 0 when it has jobs again. Nil: no function is called.
	Idle func(time.Duration)

	// Registered is called each time a dispatcher has registered the worker. Nil: no function is called.
	Registered func()

	// Alone is the time for which the worker stays without an answer from a dispatcher. After that it leaves, as if
	// drained, but not before its lease has ended. 0: it stays until EndsIn is over.
	Alone time.Duration

	// Drain, when closed, makes the worker finish its running jobs and then leave. It may be nil.
	Drain <-chan struct{}
}

// A Reason is the reason why a worker left.
type Reason string

const (
	Drained Reason = "drained" // it was asked to finish its running jobs
	Expired Reason = "expired" // its time was over
	Asked   Reason = "asked"   // it was asked to leave at once, or ctx ended
	Refused Reason = "refused" // the dispatcher rejected it; the error has the reason
)

const (
	lastAcks   = time.Second            // how long a leaving worker waits for its last results to be recorded
	workerTick = 250 * time.Millisecond // maximum time between two checks of clock and lease
	idleTick   = time.Second            // interval between two calls of Idle
)

// A phase is a stage of a worker's shutdown.
type phase uint8

const (
	taking   phase = iota // accepts jobs
	draining              // accepts no more jobs; running ones continue
	leaving               // no task may start any more
)

// A worker holds jobs, and the results that its dispatcher has not acknowledged.
type worker struct {
	lg       *slog.Logger
	cfg      Config
	exec     *executor.Executor
	cutAt    time.Time     // when running jobs are killed
	asked    chan struct{} // holds a token when the dispatcher has asked the worker to leave
	moved    chan struct{} // holds a token when the main loop has to check the state
	runners  sync.WaitGroup
	couriers couriers

	mu      sync.Mutex // guards the fields below
	line    line
	lease   lease
	jobs    jobs
	results results
	idle    idleWatch
	phase   phase
}

// Run connects and runs the tasks that it receives, until its time is over, it is asked to leave, or it is refused.
// When it returns, none of its processes is running. The error is nil unless the reason is Refused or no task can run
// on this machine.
//
// Without its dispatcher the worker keeps its tasks for the length of the lease, then kills them; it looks for a
// dispatcher until its end.
func Run(ctx context.Context, lg *slog.Logger, cfg Config) (Reason, error) {
	if cfg.Host == "" {
		cfg.Host, _ = os.Hostname() // the name is optional
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
			room: matching.Room{Host: cfg.Resources, CutAt: cutAt, Speed: cfg.Speed}, gpus: cfg.Devices,
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

// run is the main loop. The connection outlives ctx, because a leaving worker still has to send messages. The
// connection ends with unlink, after leave has sent the bye message.
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

// step does the work that is due at now; it reports whether the worker has drained.
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

// expireLocked gives up all jobs when the lease has ended; the dispatcher will soon give them up as well. Waiting jobs
// are dropped without a message, because there is no connection; running ones are killed and may not publish. The
// worker itself stays and continues to look for a dispatcher.
func (w *worker) expireLocked() {
	if w.line.conn != nil {
		_ = w.line.conn.Net.Close() // it was silent for a whole lease: a new connection may work
	}
	w.jobs.giveUp(w.jobs.waiting)
	for _, k := range w.jobs.all {
		k.lapsed = true
	}
	if len(w.jobs.all) > 0 {
		w.lg.Warn("lease has ended: killing tasks", "jobs", len(w.jobs.all))
	}
	w.killLocked(execution.Cut, executor.ErrStale.Error())
}

// killLocked kills the running task of every job, and ends the job.
func (w *worker) killLocked(cause execution.Status, why string) {
	for _, k := range w.jobs.all {
		k.stopLocked(cause, why)
	}
}

// drainLocked stops accepting jobs and returns those that have not started.
func (w *worker) drainLocked(reason string) {
	if w.phase != taking {
		return
	}
	w.phase = draining
	w.line.send(&wire.Message{Type: wire.TypeDraining, Reason: reason})
	w.handBackLocked(w.jobs.waiting, "its worker leaves")
	w.rouse()
}

// leave kills the running jobs, notifies the dispatcher, and waits until all have ended. The last results must be
// recorded within lastAcks; otherwise their tasks are repeated. The bye ends the lease at once.
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

// rouse makes the main loop check the state again.
func (w *worker) rouse() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}
