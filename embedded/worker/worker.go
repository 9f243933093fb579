// Package worker is the process on a node that runs the jobs of an embedded cluster.
//
// One goroutine, the main loop, watches time: its end, its lease, heartbeats, results that were not acknowledged.
// Another keeps a connection and does what messages say. Each job that runs has one more. They share what the worker
// has, under one lock.
//
// The lease counts from when a heartbeat was sent, not from when its answer came: the dispatcher counts from when it
// arrived, which is later, so the worker always gives up first. A job remembers that the lease under which it began
// has lapsed; a new lease does not let it publish.
package worker

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/execution"
)

// A Config is what a worker needs to know.
type Config struct {
	ID         string   // TAG/HOSTINDEX: unique in the cluster
	Instance   string   // of this process and no other
	Holder     string   // the pilot process that started it
	Host       string   // for people; empty: as the machine calls itself
	Tag, Token string   // of the attempt
	Addresses  []string // unix:PATH, tls:HOST:PORT or relay:HOST:PORT, in the order to try
	CertDigest string   // sha256:HEX of the worker port's certificate, for tls addresses
	CPUs       int      // that its tasks may use at once
	MemoryMiB  int      // likewise

	EndsIn  time.Duration // it has left by then, counted from the call of Run
	Scratch string        // a directory of this worker alone, for its tasks' TMPDIRs; empty: their own directories

	// Idle is called when the worker has registered and about every second from then on while it has
	// nothing to do, with how long that has been; and with 0 when it has something. Nil: nobody asks.
	Idle func(time.Duration)

	// Registered is called each time that a dispatcher has taken the worker in. Nil: nobody asks.
	Registered func()

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
	killGrace    = 2 * time.Second        // before EndsIn, at most a tenth of it: tasks are killed, and the worker leaves
	lastAcks     = time.Second            // how long a worker that leaves waits for its last results to be recorded
	resultsDelay = 5 * time.Millisecond   // that a result waits for others, while there is more to run
	resultsBatch = 64                     // or until there are so many
	workerTick   = 250 * time.Millisecond // at most, between two looks at clock and lease
	idleTick     = time.Second            // between two calls of Idle
)

// work is a job that the worker has.
type work struct {
	job       execution.Job
	running   bool
	cancelled bool
	lapsed    bool              // the lease under which it began is over: it may not publish
	now       *executor.Attempt // of the task that runs
	halt      func()            // ends the carrying of its files; nil: they are not carried
}

// A worker runs jobs and keeps what its dispatcher has not acknowledged.
type worker struct {
	lg     *slog.Logger
	cfg    Config
	host   string
	exec   *executor.Executor
	began  time.Time // heartbeats are numbered by the time since
	cutAt  time.Time // when what runs is killed
	asked  chan struct{}
	moved  chan struct{} // holds a token when there is something for the main loop to look at
	runner sync.WaitGroup

	couriers couriers

	mu         sync.Mutex // guards what follows
	conn       *wire.Conn // nil while there is none
	registered bool       // over conn
	lease      time.Duration
	heartbeat  time.Duration
	leaseFrom  time.Time // zero before the first welcome
	beatAt     time.Time
	every      time.Duration // of the main loop's ticker, once there are terms
	jobs       map[execution.Key]*work
	waiting    []*work
	usedCPUs   int
	usedMemory int
	unacked    map[int64]*unacked
	fresh      []wire.Report // not sent yet
	flushing   bool          // a timer will send them
	lastN      int64
	draining   bool
	leaving    bool // no task may start any more
	idleSince  time.Time
	toldIdle   time.Time // when Idle was last called with how long
	toldBusy   bool
}

// unacked is a result that the dispatcher may not have recorded.
type unacked struct {
	wire.Report
	sentAt  time.Time // zero: not yet
	stopped bool      // its job was stopped before its last task
}

// cutAfter is how long a worker that has to leave in endsIn lets tasks run.
func cutAfter(endsIn time.Duration) time.Duration { return endsIn - min(killGrace, endsIn/10) }

// Longest is the longest estimate of a job that a worker with EndsIn takes when it is new.
func Longest(endsIn time.Duration) time.Duration { return cutAfter(endsIn) - execution.StartMargin }

// Run dials in and runs the tasks that it is given, until its time is over, it is asked to leave,
// or it is refused. When it returns nothing of it runs any more. The error is not nil only for
// Refused, and for a machine on which no task can run.
//
// Without its dispatcher it keeps its tasks for the lease, then kills them; it looks for a dispatcher
// until its end.
func Run(ctx context.Context, lg *slog.Logger, cfg Config) (Reason, error) {
	host := cfg.Host
	if host == "" {
		host, _ = os.Hostname() // a worker without it is as good
	}
	x, err := executor.New(cfg.ID, host, cfg.Scratch)
	if err != nil {
		return Expired, err
	}
	defer x.Close()
	now := time.Now()
	w := &worker{
		lg: lg.With("worker", cfg.ID), cfg: cfg, host: host, exec: x,
		began: now, cutAt: now.Add(cutAfter(cfg.EndsIn)),
		asked: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		jobs: map[execution.Key]*work{}, unacked: map[int64]*unacked{}, idleSince: now,
	}
	defer w.couriers.close()
	if cfg.Scratch != "" {
		sweepLoads(cfg.Scratch)
	}
	return w.run(ctx)
}

// run is the main loop.
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
			w.drain("asked by its pilot")
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
	if every := min(workerTick, w.heartbeat/2); w.heartbeat > 0 && every != w.every {
		w.every = every
		tick.Reset(every)
	}
	if w.conn != nil && now.Sub(w.beatAt) >= w.heartbeat {
		w.beatLocked(now)
	}
	w.checkLeaseLocked(now)
	w.repeatLocked(now)
	drained = w.draining && len(w.jobs) == 0 && len(w.unacked) == 0
	idle, tell := w.idleLocked(now)
	w.mu.Unlock()
	if tell && w.cfg.Idle != nil {
		w.cfg.Idle(idle)
	}
	return drained
}

// idleLocked says whether Idle should be called now, and with what.
func (w *worker) idleLocked(now time.Time) (idle time.Duration, tell bool) {
	if !w.registered {
		return 0, false
	}
	if len(w.jobs) > 0 {
		tell = !w.toldBusy
		w.toldBusy, w.toldIdle = true, time.Time{}
		return 0, tell
	}
	if now.Sub(w.toldIdle) < idleTick {
		return 0, false
	}
	w.toldBusy, w.toldIdle = false, now
	return max(now.Sub(w.idleSince), time.Nanosecond), true
}

// checkLeaseLocked gives everything up if the lease is over.
func (w *worker) checkLeaseLocked(now time.Time) {
	if !w.leaseFrom.IsZero() && now.Sub(w.leaseFrom) > w.lease {
		w.expireLocked()
	}
}

// expireLocked gives up everything, as the dispatcher soon will: the lease is over.
func (w *worker) expireLocked() {
	if w.conn != nil {
		_ = w.conn.Net.Close() // silent for so long: another connection may work
	}
	for _, k := range w.waiting {
		delete(w.jobs, k.job.Key())
	}
	w.waiting = nil
	for _, k := range w.jobs {
		k.lapsed = true
	}
	if len(w.jobs) > 0 {
		w.lg.Warn("lease is over: killing tasks", "jobs", len(w.jobs))
	}
	w.killLocked(execution.Cut, executor.ErrStale.Error())
}

// killLocked ends what runs, and every job with it.
func (w *worker) killLocked(cause execution.Status, why string) {
	for _, k := range w.jobs {
		w.stopLocked(k, cause, why)
	}
}

// stopLocked ends a job that runs.
func (w *worker) stopLocked(k *work, cause execution.Status, why string) {
	k.cancelled = true
	if k.now != nil {
		k.now.Stop(cause, why)
	}
	if k.halt != nil {
		k.halt()
	}
}

// drain takes nothing more and hands back what has not started.
func (w *worker) drain(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drainLocked(reason)
}

func (w *worker) drainLocked(reason string) {
	if w.draining {
		return
	}
	w.draining = true
	w.sendLocked(&wire.Message{Type: wire.TypeDraining, Reason: reason})
	w.handBackLocked(w.waiting, "its worker leaves")
	w.rouse()
}

// leave kills what runs, tells the dispatcher, and waits until nothing is left.
func (w *worker) leave(reason Reason) Reason {
	w.lg.Info("leaving", "reason", reason)
	w.drain("leaving: " + string(reason))
	w.mu.Lock()
	w.leaving = true
	w.killLocked(execution.Cut, "its worker had to leave: "+string(reason))
	w.mu.Unlock()
	w.runner.Wait()
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
	c := w.conn
	w.sendLocked(&wire.Message{Type: wire.TypeBye, Reason: string(reason)})
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
	return w.conn != nil && len(w.unacked) > 0
}

// rouse has the main loop look again.
func (w *worker) rouse() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}
