package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// sinkRest is how long a sink that failed is left alone.
const sinkRest = time.Second

// A feed calls one run's sink from one goroutine of its own, in the order of the events, so that a slow journal holds
// up neither heartbeats nor other runs. It also keeps what the dispatcher has of the run: the queued jobs, and the
// couriers that are at the run's files.
type feed struct {
	run  corral.RunID
	sink Sink
	lg   *slog.Logger
	d    *Dispatcher
	jobs *matching.Run[*entry] // guarded by d.mu

	carries map[*wire.Conn]context.CancelFunc // of couriers at the run's files; guarded by d.mu
	carried sync.WaitGroup                    // of the same

	wake chan struct{}
	quit chan struct{} // closed by stop
	done chan struct{} // closed when the goroutine is gone

	mu     sync.Mutex // guards events
	events []event
}

// An event is one thing that the sink must be told: exactly one field is set.
type event struct {
	assigned *assignment
	finished []batch
	returned *handBack
}

// An assignment is a worker's new jobs, to be sent once their intent is recorded.
type assignment struct {
	to      *member
	entries []*entry
}

// A batch is results that one worker sent; from is nil for results of the dispatcher's own making.
type batch struct {
	from    *member
	reports []wire.Report
	entries []*entry // of the reports, one for one
}

// A handBack is jobs that no worker has any more.
type handBack struct {
	entries []*entry
	started bool
	until   time.Time // their worker was there; zero: now
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

// tell queues an event, in any number, and never waits. Results join those that are queued already, so that a journal
// that is behind catches up with one call for all of them.
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

// stop ends the feed and waits for a call that is under way; events that are queued are forgotten.
func (f *feed) stop() {
	close(f.quit)
	<-f.done
}

// loop delivers events in their order, one batch after the other. It holds no lock while it does, so that whoever
// posts an event never waits for whoever reads it.
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

// stopped reports whether no more events may be delivered.
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

// deliverAssigned has jobs recorded as assigned, and then sent. If the sink refuses they go back into the queue after a
// rest, because to match them again at once would only be refused again.
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

// deliverFinished has results recorded, and then acknowledged. If the sink refuses, the workers keep the results and
// send them again; only those that the dispatcher made itself are repeated here.
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
		if b.from == nil { // no worker will repeat them
			f.tell(event{finished: []batch{b}})
		}
	}
}

// deliverReturned tells of jobs that have come back, those that may have run apart from those that have not: the former
// cost an attempt. A job whose last result was recorded before its return is over, and is left out.
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

// rest gives a sink that failed some time.
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
