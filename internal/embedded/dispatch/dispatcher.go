// Package dispatch assigns the jobs of runs to the workers of one embedded cluster.
//
// The Dispatcher holds a matching.Matcher under its lock; the matcher decides which worker gets which job. The
// Dispatcher adds bookkeeping on both sides. A member is a worker instance with the jobs that it holds; a feed calls a
// run's sink in order, from one goroutine, so that a slow journal delays neither heartbeats nor other runs.
//
// A job passes through these steps, each in the file named:
//
//	Submit    queue the job in the matcher                           dispatcher.go
//	match     book it for a member and notify its feed               assign.go
//	record    let the sink record the chosen worker                  feed.go
//	dispatch  send it, or queue it again if the member has left      acknowledge.go
//	result    receive its results and pass them to the feed          session.go, results.go
//	record    let the sink record the results                        feed.go
//	ack       let the worker delete the results, the member the job  acknowledge.go
//
// Each step is taken only after the previous one has been recorded, so a crash between two steps may cause work to be
// repeated but never to be lost. A failure in between ends in one of three ways: the job is queued again because it has
// not started, it is returned to its sink as not started, or it is returned as possibly started.
//
// After a restart of corrald the dispatcher's state is empty. Runs report which jobs may be running and where (Expect),
// and workers report which jobs they hold (reconcileLocked), in either order. Until claims, which is a lease and a
// margin later, the dispatcher waits for both before it concludes that a job has no run or no worker.
package dispatch

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// Config configures a personal cluster. Production uses the zero value.
type Config struct {
	Lease     time.Duration // how long a worker keeps its tasks without an answer; 0: 15 s
	Margin    time.Duration // added to the lease before its jobs are returned; 0: 5 s
	Heartbeat time.Duration // interval between heartbeats; 0: a fifth of the lease
	Idle      time.Duration // how long a courier may be idle before its connection is closed; 0: 10 s

	// OnChange is called when a worker has registered, was lost, has left, or has changed in any other way that Workers
	// shows, except for its number of running tasks. It must not block. Nil: no function is called.
	OnChange func()

	// Asked returns the request made to an attempt, for workers of that attempt that register later. Nil: no request.
	Asked func(corral.JobID) corral.Ask
}

// Terms returns the lease and the heartbeat interval for workers and pilots.
func (c Config) Terms() wire.Terms {
	c = c.withDefaults()
	return wire.Terms{Lease: c.Lease, Heartbeat: c.Heartbeat}
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.Margin = cmp.Or(c.Margin, 5*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, c.Lease/5)
	c.Idle = cmp.Or(c.Idle, 10*time.Second)
	if c.OnChange == nil {
		c.OnChange = func() {}
	}
	if c.Asked == nil {
		c.Asked = func(corral.JobID) corral.Ask { return corral.AskNothing }
	}
	return c
}

// A Dispatcher assigns the jobs of runs to the workers of one personal cluster. Its methods may be called from any
// goroutine, but not from within a Sink's method.
//
// One lock guards all decisions. It is held only briefly: the dispatcher never waits under it for sinks or connections,
// which may be slow. Each run has a goroutine that calls its sink (feed), each connection has one that reads
// (ServeWorker) and one that writes (wire.Conn), and watch handles timeouts.
type Dispatcher struct {
	lg   *slog.Logger
	cfg  Config
	quit chan struct{}
	done chan struct{}

	mu      sync.Mutex // guards the fields below; not held while a Sink is called or a connection is written to
	closed  bool
	matcher matching.Matcher[*entry] // a slot is open while its worker is connected and not draining
	feeds   map[corral.RunID]*feed
	members roster
	missing map[string]corral.Worker // :: id → a worker that was given up because it was silent; it may come back
	ended   map[string]bool          // :: tag of an attempt → all its processes have ended
	claims  time.Time                // the time until which a worker may hold unclaimed jobs
	stepped time.Time                // when step was last called
}

// New starts a dispatcher with no workers and no runs. The caller must Close it.
func New(lg *slog.Logger, c Config) *Dispatcher {
	d := &Dispatcher{
		lg: lg, cfg: c.withDefaults(),
		quit: make(chan struct{}), done: make(chan struct{}),
		matcher: matching.Matcher[*entry]{StartMargin: execution.StartMargin},
		feeds:   map[corral.RunID]*feed{}, ended: map[string]bool{}, missing: map[string]corral.Worker{},
	}
	d.stepped = time.Now()
	d.claims = d.stepped.Add(d.cfg.Lease + d.cfg.Margin)
	go d.watch()
	return d
}

// Attach makes sink the owner of a run's jobs, until Detach. A run has one sink at a time; attaching a second one is a
// bug in the caller and panics.
func (d *Dispatcher) Attach(run corral.RunID, sink Sink) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if d.feeds[run] != nil {
		panic("embedded: a run has two sinks")
	}
	d.feeds[run] = newFeed(d, run, sink)
}

// Detach removes a run from the dispatcher: its queued jobs are dropped, and its jobs on workers are killed. After
// Detach has returned, the sink is not called any more and the run's files are not accessed: Detach waits for a call in
// progress, and closes the connections of couriers that access those files.
func (d *Dispatcher) Detach(run corral.RunID) {
	d.mu.Lock()
	f := d.feeds[run]
	delete(d.feeds, run)
	if f != nil && !d.closed {
		d.matcher.Remove(f.jobs)
		now := time.Now()
		for _, m := range d.members {
			m.disown(run, now)
		}
		for c, cancel := range f.carries {
			cancel()
			_ = c.Net.Close()
		}
	}
	d.mu.Unlock()
	if f != nil {
		f.stop()
		f.carried.Wait()
	}
}

// Submit queues jobs of attached runs. The dispatcher owns the data that the jobs point to until they end.
func (d *Dispatcher) Submit(jobs []execution.Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	for i := range jobs {
		f := d.feeds[jobs[i].Run]
		if f == nil {
			d.lg.Error("job of a run that is not attached", "run", jobs[i].Run, "seq", jobs[i].Seq)
			continue
		}
		d.matcher.Push(&newEntry(jobs[i], f.jobs).match)
	}
	d.matchLocked(time.Now())
}

// Cancel drops the run's queued jobs, which are Returned as not started, and kills the running ones, whose results have
// the status Cancelled. If job numbers are given, only those jobs are affected.
func (d *Dispatcher) Cancel(run corral.RunID, jobs ...int64) {
	these := make(map[int64]bool, len(jobs))
	for _, seq := range jobs {
		these[seq] = true
	}
	is := func(key execution.Key) bool { return len(these) == 0 || these[key.Seq] }
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.feeds[run]
	if f == nil || d.closed {
		return
	}
	gone := d.matcher.RemoveFunc(f.jobs, func(e *entry) bool { return is(e.job.Key()) })
	if len(gone) > 0 {
		f.tell(event{returned: &handBack{entries: gone, reason: "cancelled"}})
	}
	for _, m := range d.members {
		for key, e := range m.held {
			if key.Run == run && is(key) {
				e.cancelled = true
			}
		}
		m.sendCancels()
	}
}

// Withdraw drops the given jobs that are still queued: they are Returned as not started. Jobs that a worker holds are
// not affected.
func (d *Dispatcher) Withdraw(run corral.RunID, seqs []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.feeds[run]
	if f == nil || d.closed {
		return
	}
	in := make(map[int64]bool, len(seqs))
	for _, seq := range seqs {
		in[seq] = true
	}
	if gone := d.matcher.RemoveFunc(f.jobs, func(e *entry) bool { return in[e.job.Seq] }); len(gone) > 0 {
		slices.SortFunc(gone, func(a, b *entry) int { return cmp.Compare(a.job.Seq, b.job.Seq) })
		f.tell(event{returned: &handBack{entries: gone, reason: "withdrawn"}})
	}
}

// Workers returns the registered workers, sorted by id. A worker that lost its connection is included, as not
// connected, until its lease ends.
func (d *Dispatcher) Workers() []corral.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	workers := make([]corral.Worker, 0, len(d.members))
	for _, m := range d.members {
		if m.instance != "" {
			workers = append(workers, m.worker())
		}
	}
	return workers
}

// Load returns the resource classes of the jobs that wait for a worker, and how many jobs are held by or booked for
// one.
func (d *Dispatcher) Load() (waiting []matching.Class, held int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		held += len(m.held)
	}
	return d.matcher.Waiting(), held
}

// Ask makes the connected workers of an attempt drain or leave. Workers that register later get the request that
// Config.Asked returns, so the caller must have recorded it before.
func (d *Dispatcher) Ask(attempt corral.JobID, ask corral.Ask) {
	d.mu.Lock()
	for _, m := range d.members {
		if m.about.Attempt == attempt {
			m.drain(&d.matcher)
			m.send(wire.AskMessage(ask))
		}
	}
	d.mu.Unlock()
	d.cfg.OnChange()
}

// Close ends all connections and waits until no sink is being called. It notifies no worker: workers keep their tasks
// and look for the dispatcher's successor until their leases end, so that a restart of corrald costs no work.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.closed = true
	feeds := slices.Collect(maps.Values(d.feeds))
	clear(d.feeds) // a later Detach finds nothing to stop
	for _, m := range d.members {
		m.hangUp()
	}
	d.mu.Unlock()
	for _, f := range feeds {
		f.stop()
	}
	close(d.quit)
	<-d.done
}
