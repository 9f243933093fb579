// Package dispatch gives the jobs of runs to the workers of one embedded cluster.
//
// The Dispatcher holds a matching.Matcher under its lock, which decides which worker gets which job. What it adds is
// bookkeeping on both sides. A member is an instance of a worker with the jobs that it has; a feed calls a run's sink
// in order, from one goroutine, so that a slow journal holds up neither heartbeats nor other runs.
//
// The life of a job, with the file where each step is:
//
//	Submit    queued in the matcher                               dispatcher.go
//	match     booked for a member; its feed is told               assign.go
//	record    the sink notes who will get it                      feed.go
//	dispatch  sent, or queued again if the member is gone         recorded.go
//	result    taken in from the session, handed to the feed       session.go, results.go
//	record    the sink notes the result                           feed.go
//	ack       the worker forgets the result, the member the job   recorded.go
//
// Each step is taken only after the one before has been recorded, so a crash between two of them leaves something that
// is repeated, and never something that is lost. Whatever goes wrong in between ends in one of three ways: the job is
// queued again because it has not started, it is returned to its sink as never started, or it is returned as possibly
// started.
//
// After a restart of corrald the dispatcher knows nothing. Runs tell which jobs may be running and where (Expect),
// workers tell what they hold (reconcileLocked), in either order; for the length of a lease, claims, it waits for both
// before it concludes that a job has no run, or no worker.
package dispatch

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// Config sets the terms of a personal cluster. The zero value is what production uses.
type Config struct {
	Lease     time.Duration // how long a worker keeps its tasks without an answer; 0: 15 s
	Margin    time.Duration // beyond the lease, before its jobs are given back; 0: 5 s
	Heartbeat time.Duration // between signs of life; 0: a fifth of the lease
	Idle      time.Duration // how long a courier may have nothing to carry before it must dial in again; 0: 10 s

	// OnChange is called when a worker registered, was lost, left, or changed in another way that
	// Workers shows, except for what it runs. It must not block. Nil: nothing is called.
	OnChange func()

	// Asked says what was asked of an attempt, for its workers that register. Nil: nothing was.
	Asked func(corral.JobID) corral.Ask
}

// Terms are those that c has for workers and pilots.
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

// A Dispatcher matches the jobs of runs to the workers of one personal cluster. Its methods may be called from any
// goroutine, but not from within a Sink's method.
//
// One lock guards everything that is decided. It is held for short whiles only: sinks and connections, which may be
// slow, are never waited for under it. Each run has a goroutine that calls its sink (feed), each connection one that
// reads it (ServeWorker) and one that writes (wire.Conn), and watch does what the time brings.
type Dispatcher struct {
	lg   *slog.Logger
	cfg  Config
	quit chan struct{}
	done chan struct{}

	mu      sync.Mutex // guards what follows; never held while a Sink is called or a connection written
	closed  bool
	matcher matching.Matcher[*entry] // a slot is open while its worker is connected and not draining
	feeds   map[corral.RunID]*feed
	members roster
	missing map[string]corral.Worker // :: id → a worker that was given up for its silence; it may come back
	ended   map[string]bool          // :: tag of an attempt → nothing of it runs any more
	claims  time.Time                // until then a worker may hold jobs that are not known yet
	stepped time.Time                // when step was called last
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

// Attach makes sink the owner of a run's jobs, until Detach. A run has one sink at a time; a second one is a defect of
// the caller and panics.
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

// Detach ends the dispatcher's dealings with a run: its queued jobs are forgotten, and those that workers have are
// killed. Once Detach has returned the sink is not called any more, and the files of the run are not touched: it waits
// for a call that is under way, and ends the connections of couriers that are at those files.
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

// Submit queues jobs of attached runs. The dispatcher owns what jobs point to until they end.
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

// Cancel drops the run's queued jobs (they are Returned, not started) and kills those that run: their
// results come with status Cancelled. If jobs are named, by their numbers, it does so to them alone.
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
	gone := d.matcher.RemoveIf(f.jobs, func(e *entry) bool { return is(e.job.Key()) })
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

// Withdraw drops those of the run's jobs that are queued: they are Returned, not started. What a worker has stays
// there.
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

// Workers returns the workers that are registered, sorted by id. One that lost its connection is among
// them, not connected, until its lease is over.
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

// Load returns what the jobs need that no worker has, and how many jobs one has or is about to get.
func (d *Dispatcher) Load() (waiting []matching.Class, held int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		held += len(m.held)
	}
	return d.matcher.Waiting(), held
}

// Ask has the attempt's workers that are connected drain or leave. Those that come later are told what Config.Asked
// says, which must know of it by now.
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

// Close ends all connections and waits until no sink is being called. It tells workers nothing: they keep their tasks
// and look for the dispatcher's successor until their leases are over, so that a restart of corrald costs no work.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return
	}
	d.closed = true
	feeds := slices.Collect(maps.Values(d.feeds))
	clear(d.feeds) // a Detach that comes later finds nothing to stop
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
