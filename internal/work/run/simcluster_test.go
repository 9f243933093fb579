package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

// A simWorker is a worker of a simCluster.
type simWorker struct {
	id        string
	cpus      int
	memoryMiB int
	endsAt    time.Time // zero: never leaves
	draining  bool      // accepts no more jobs
	slot      matching.Slot[*simHeld]
}

// leavesAt returns the time at which the worker leaves. A worker that never leaves has a time long after the test.
func (w *simWorker) leavesAt() time.Time {
	if w.endsAt.IsZero() {
		return time.Now().Add(1000 * time.Hour)
	}
	return w.endsAt
}

// A simCluster is a personal cluster in virtual time: a Dispatcher whose workers only simulate running. It is a Clusters
// that contains only itself. Package matching assigns jobs to workers, as in production. The simCluster simulates other
// events of a queue: it loses workers, forgets jobs, and is refused by sinks.
type simCluster struct {
	run func(execution.Task) (execution.Status, time.Duration) // result of a task and its duration; nil: Done, estimate

	mu       sync.Mutex // guards the fields below
	workers  []*simWorker
	extra    []execution.Capacity // requested
	sinks    map[corral.RunID]dispatch.Sink
	matcher  matching.Matcher[*simHeld]
	queued   map[corral.RunID]*matching.Run[*simHeld]
	held     map[execution.Key]*simHeld
	started  []string // ID.ATTEMPT, in order
	expected []string // ID.ATTEMPT
	calls    sync.WaitGroup
	order    chan struct{} // holds a token while no sink is called
}

type simHeld struct {
	job    execution.Job
	match  matching.Job[*simHeld]
	worker *simWorker
	timer  *time.Timer
	began  time.Time
}

func newSimCluster(workers ...*simWorker) *simCluster {
	c := &simCluster{held: map[execution.Key]*simHeld{}, order: make(chan struct{}, 1)}
	c.order <- struct{}{}
	c.restart()
	for _, w := range workers {
		c.join(w)
	}
	return c
}

func (c *simCluster) join(w *simWorker) {
	c.mu.Lock()
	w.slot.ID, w.slot.EndsAt = w.id, w.leavesAt()
	w.slot.Host = corral.Resources{CPUs: w.cpus, MemoryMiB: w.memoryMiB}
	c.workers = append(c.workers, w)
	c.matcher.Open(&w.slot)
	c.mu.Unlock()
	c.match()
}

// lose removes a worker with all its jobs.
func (c *simCluster) lose(id string) {
	c.mu.Lock()
	c.workers = slices.DeleteFunc(c.workers, func(w *simWorker) bool {
		if w.id == id {
			c.matcher.Close(&w.slot)
		}
		return w.id == id
	})
	var keys []execution.Key
	for key, h := range c.held {
		if h.worker.id == id {
			h.timer.Stop()
			keys = append(keys, key)
			delete(c.held, key)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(keys, func(a, b execution.Key) int { return cmp.Compare(a.Seq, b.Seq) })
	c.tell(func() {
		for _, k := range keys {
			c.sink(k.Run).Returned([]execution.Key{k}, true, time.Time{}, "worker "+id+" was lost")
		}
	})
}

// tell calls sinks, one call after another.
func (c *simCluster) tell(call func()) {
	<-c.order
	defer func() { c.order <- struct{}{} }()
	call()
}

func (c *simCluster) sink(run corral.RunID) dispatch.Sink {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sinks[run]; s != nil {
		return s
	}
	return nobody{}
}

// nobody is a sink that accepts nothing, as if corrald were down.
type nobody struct{}

func (nobody) Assigned(string, []execution.Key) error            { return errClosed }
func (nobody) Finished([]execution.Result) error                 { return errClosed }
func (nobody) Returned([]execution.Key, bool, time.Time, string) {}

// restart clears the queue, which dies with corrald. Workers continue.
func (c *simCluster) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sinks, c.queued = map[corral.RunID]dispatch.Sink{}, map[corral.RunID]*matching.Run[*simHeld]{}
	for _, w := range c.workers {
		c.matcher.Close(&w.slot) // a slot leaves the matcher that it is in, before that matcher is replaced
	}
	c.matcher = matching.Matcher[*simHeld]{StartMargin: execution.StartMargin}
	for _, w := range c.workers {
		c.matcher.Open(&w.slot)
	}
}

func (c *simCluster) Queue(corral.ClusterID, corral.RunOptions) (Dispatcher, error) { return c, nil }

func (c *simCluster) Offer(context.Context, corral.ClusterID) (execution.Offer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := execution.Offer{Capacities: slices.Clone(c.extra)}
	for _, w := range c.workers {
		s.CPUs += w.cpus
		s.Capacities = append(s.Capacities, execution.CapacityOf(corral.Worker{ID: w.id, CPUs: w.cpus, MemoryMiB: w.memoryMiB, EndsAt: w.leavesAt(), Connected: true, Draining: w.draining}, time.Now()))
	}
	return s, nil
}

func (c *simCluster) Attach(run corral.RunID, sink dispatch.Sink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sinks[run] = sink
}

func (c *simCluster) Detach(run corral.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sinks, run)
	c.matcher.Remove(c.runOf(run))
	for key, h := range c.held {
		if key.Run == run {
			h.timer.Stop()
			h.worker.slot.Release(&h.match, time.Now())
			delete(c.held, key)
		}
	}
}

func (c *simCluster) Submit(jobs []execution.Job) {
	c.mu.Lock()
	for _, j := range jobs {
		h := &simHeld{job: j}
		h.match = matching.Job[*simHeld]{
			Value: h, Run: c.runOf(j.Run), Class: j.Class, Priority: j.Priority,
			Needs: matching.Resources{Resources: j.Needs(), Time: j.Estimate()},
		}
		c.matcher.Push(&h.match)
	}
	c.mu.Unlock()
	c.calls.Go(c.match)
}

func (c *simCluster) Cancel(run corral.RunID, jobs ...int64) {
	is := func(key execution.Key) bool { return len(jobs) == 0 || slices.Contains(jobs, key.Seq) }
	c.mu.Lock()
	var gone []execution.Key
	for _, h := range c.matcher.RemoveFunc(c.runOf(run), func(h *simHeld) bool { return is(h.job.Key()) }) {
		gone = append(gone, h.job.Key())
	}
	for key, h := range c.held {
		if key.Run == run && is(key) && h.timer.Stop() {
			c.calls.Go(func() { c.end(h, 0, execution.Cancelled) })
		}
	}
	c.mu.Unlock()
	c.calls.Go(func() { c.tell(func() { c.sink(run).Returned(gone, false, time.Time{}, "cancelled") }) })
}

func (c *simCluster) Withdraw(run corral.RunID, seqs []int64) {
	c.mu.Lock()
	var gone []execution.Key
	for _, h := range c.matcher.RemoveFunc(c.runOf(run), func(h *simHeld) bool { return slices.Contains(seqs, h.job.Seq) }) {
		gone = append(gone, h.job.Key())
	}
	c.mu.Unlock()
	c.calls.Go(func() { c.tell(func() { c.sink(run).Returned(gone, false, time.Time{}, "withdrawn") }) })
}

func (c *simCluster) Expect(run corral.RunID, worker string, jobs []execution.Job) {
	c.mu.Lock()
	var gone []execution.Key
	for _, j := range jobs {
		for _, t := range j.Tasks {
			c.expected = append(c.expected, fmt.Sprintf("%s.%d", t.ID, t.Attempt))
		}
		if c.held[j.Key()] == nil {
			gone = append(gone, j.Key())
		}
	}
	c.mu.Unlock()
	if len(gone) > 0 {
		c.calls.Go(func() {
			c.tell(func() { c.sink(run).Returned(gone, true, time.Time{}, "its worker came back without it") })
		})
	}
}

// runOf returns the matching's record of a run.
func (c *simCluster) runOf(id corral.RunID) *matching.Run[*simHeld] {
	if c.queued[id] == nil {
		c.queued[id] = &matching.Run[*simHeld]{}
	}
	return c.queued[id]
}

// match starts the jobs that fit.
func (c *simCluster) match() {
	for _, h := range c.take() {
		c.tell(func() {
			if c.sink(h.job.Run).Assigned(h.worker.id, []execution.Key{h.job.Key()}) == nil {
				c.start(h, 0)
				return
			}
			c.mu.Lock() // corrald is down: the worker never receives the job
			defer c.mu.Unlock()
			if key := h.job.Key(); c.held[key] == h {
				h.worker.slot.Release(&h.match, time.Now())
				delete(c.held, key)
				c.calls.Go(c.match)
			}
		})
	}
}

// take gives jobs to workers.
func (c *simCluster) take() (all []*simHeld) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slots := map[*matching.Slot[*simHeld]]*simWorker{}
	for _, w := range c.workers {
		if slots[&w.slot] = w; w.draining {
			c.matcher.Close(&w.slot)
		}
	}
	for slot, taken := range c.matcher.Match(time.Now()) {
		for _, h := range taken {
			h.worker = slots[slot]
			c.held[h.job.Key()] = h
			all = append(all, h)
		}
	}
	return all
}

// start starts task k of a job.
func (c *simCluster) start(h *simHeld, k int) {
	task := h.job.Tasks[k]
	status, took := execution.Done, task.Estimate
	if c.run != nil {
		status, took = c.run(task)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[h.job.Key()] != h {
		return
	}
	if left := time.Until(h.worker.endsAt); !h.worker.endsAt.IsZero() && took > left {
		status, took = execution.Cut, left
	}
	c.started = append(c.started, fmt.Sprintf("%s.%d", task.ID, task.Attempt))
	h.began = time.Now()
	h.timer = time.AfterFunc(took, func() { c.end(h, k, status) })
}

// end ends task k of a job.
func (c *simCluster) end(h *simHeld, k int, status execution.Status) {
	t := h.job.Tasks[k]
	r := execution.Result{
		Key: h.job.Key(), Index: t.Index, Attempt: t.Attempt, Status: status, Worker: h.worker.id,
		StartedAt: h.began, EndedAt: time.Now(),
	}
	if status == execution.Failed {
		r.Exit, r.Reason = 3, "exit status 3"
	}
	c.report(h, k, r)
}

// report reports a result until it is accepted, and then starts the job's next task or ends the job.
func (c *simCluster) report(h *simHeld, k int, r execution.Result) {
	var err error
	c.tell(func() { err = c.sink(h.job.Run).Finished([]execution.Result{r}) })
	c.mu.Lock()
	gone := c.held[h.job.Key()] != h
	c.mu.Unlock()
	last := k+1 == len(h.job.Tasks) || r.Status == execution.Cancelled
	switch {
	case gone:
		return
	case err != nil:
		time.AfterFunc(time.Second, func() { c.report(h, k, r) })
		return
	case !last:
		c.start(h, k+1)
		return
	}
	c.mu.Lock()
	delete(c.held, h.job.Key())
	h.worker.slot.Release(&h.match, time.Now())
	c.mu.Unlock()
	if k+1 < len(h.job.Tasks) {
		c.tell(func() { c.sink(h.job.Run).Returned([]execution.Key{h.job.Key()}, false, time.Time{}, "cancelled") })
	}
	c.match()
}

func (c *simCluster) startedTasks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.started)
}
