package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// sinkRest is the pause after a sink has failed.
const sinkRest = time.Second

// A feed calls one run's sink from its own goroutine, in the order of the events, so that a slow journal delays neither
// heartbeats nor other runs. It also holds the dispatcher's data about the run: the queued jobs, and the couriers that
// access the run's files.
type feed struct {
	run  corral.RunID
	sink Sink
	lg   *slog.Logger
	d    *Dispatcher
	jobs *matching.Run[*entry] // guarded by d.mu

	carries map[*wire.Conn]context.CancelFunc // of couriers that access the run's files; guarded by d.mu
	carried sync.WaitGroup                    // counts the same couriers

	wake chan struct{}
	quit chan struct{} // closed by stop
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // guards events
	events []event
}

// An event is a notification for the sink: exactly one field is set.
type event struct {
	assigned *assignment
	finished []batch
	returned *handBack
}

// An assignment is a list of new jobs for a worker, to be sent once the assignment has been recorded.
type assignment struct {
	to      *member
	entries []*entry
}

// A batch is a list of results that one worker sent. from is nil for results that the dispatcher created itself.
type batch struct {
	from    *member
	reports []wire.Report
	entries []*entry // parallel to reports
}

// A handBack is a list of jobs that no worker holds any longer.
type handBack struct {
	entries []*entry
	started bool
	until   time.Time // when their worker was last seen; zero: now
	reason  string
}

func newFeed(d *Dispatcher, run corral.RunID, sink Sink) *feed {
	f := &feed{
		run: run, sink: sink, d: d, jobs: &matching.Run[*entry]{}, lg: d.lg.With("run", run),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		carries: map[*wire.Conn]context.CancelFunc{},
	}
	go f.loop()
	return f
}

// tell queues an event without blocking; the queue has no limit. Results are merged with other results at the end of
// the queue, so that a slow journal can catch up with one call for all of them.
func (f *feed) tell(e event) {
	f.mu.Lock()
	if n := len(f.events); n > 0 && e.finished != nil && f.events[n-1].finished != nil {
		f.events[n-1].finished = append(f.events[n-1].finished, e.finished...)
	} else {
		f.events = append(f.events, e)
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// stop ends the feed and waits for a call in progress; queued events are dropped.
func (f *feed) stop() {
	close(f.quit)
	<-f.done
}

// loop delivers events in order, one batch after another. It holds no lock while it calls the sink, so tell never waits
// for a delivery.
func (f *feed) loop() {
	defer close(f.done)
	for {
		select {
		case <-f.quit:
			return
		case <-f.wake:
		}
		f.mu.Lock()
		events := f.events
		f.events = nil
		f.mu.Unlock()
		for _, e := range events {
			if f.stopped() {
				return
			}
			f.deliver(e)
		}
	}
}

// stopped reports whether stop was called, after which no more events may be delivered.
func (f *feed) stopped() bool {
	select {
	case <-f.quit:
		return true
	default:
		return false
	}
}

func (f *feed) deliver(e event) {
	switch {
	case e.assigned != nil:
		f.deliverAssigned(e.assigned)
	case e.finished != nil:
		f.deliverFinished(e.finished)
	case e.returned != nil:
		f.deliverReturned(e.returned)
	}
}

// deliverAssigned makes the sink record jobs as assigned, and then sends them. If the sink fails, the jobs return to
// the queue after a pause, because an immediate match would only fail again.
func (f *feed) deliverAssigned(a *assignment) {
	err := f.sink.Assigned(a.to.slot.ID, keysOf(a.entries))
	if err != nil {
		f.lg.Error("recording assigned jobs", "worker", a.to.slot.ID, "jobs", len(a.entries), "error", err)
		f.rest()
		f.unassign(a)
		return
	}
	f.dispatch(a)
}

// deliverFinished makes the sink record results, and then acknowledges them. If the sink fails, the workers keep the
// results and send them again; only results that the dispatcher created are retried here.
func (f *feed) deliverFinished(batches []batch) {
	var results []execution.Result
	for _, b := range batches {
		for i := range b.reports {
			results = append(results, b.reports[i].Result)
		}
	}
	err := f.sink.Finished(results)
	if err == nil {
		f.acknowledge(batches)
		return
	}
	f.lg.Error("recording results", "results", len(results), "error", err)
	f.rest()
	for _, b := range batches {
		if b.from == nil { // no worker will send them again
			f.tell(event{finished: []batch{b}})
		}
	}
}

// deliverReturned reports jobs that were returned. Jobs that may have run are reported separately from jobs that have
// not, because a job that may have run uses up an attempt. Jobs whose last result was recorded before their return are
// complete and are skipped.
func (f *feed) deliverReturned(h *handBack) {
	var keys, started []execution.Key
	f.d.mu.Lock()
	for _, e := range h.entries {
		switch {
		case e.complete(recorded):
		case h.started || e.unrecorded():
			started = append(started, e.job.Key())
		default:
			keys = append(keys, e.job.Key())
		}
	}
	f.d.mu.Unlock()
	if len(started) > 0 {
		f.sink.Returned(started, true, h.until, h.reason)
	}
	if len(keys) > 0 {
		f.sink.Returned(keys, false, time.Time{}, h.reason)
	}
}

// rest pauses after the sink has failed.
func (f *feed) rest() {
	t := time.NewTimer(sinkRest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.quit:
	}
}

func keysOf(entries []*entry) []execution.Key {
	keys := make([]execution.Key, len(entries))
	for i, e := range entries {
		keys[i] = e.job.Key()
	}
	return keys
}
