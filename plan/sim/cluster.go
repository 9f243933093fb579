package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A cluster represents the dispatcher of a personal cluster: it keeps the state for a matcher, as
// internal/embedded/dispatch does, and reports events to the run. Only Failures disturb its communication with workers,
// so most of production's bookkeeping is not needed.
type cluster struct {
	*clock
	run     *run
	matcher matching.Matcher[*entry]
	jobs    matching.Run[*entry] // the run's pace
	members []*member            // sorted by the IDs of their slots
	silent  []*member            // members whose hosts failed, which the dispatcher has not noticed
	of      map[*matching.Slot[*entry]]*member
	begun   map[int]*entry // :: task that runs from the beginning → its job, once it is released
	way     time.Duration  // delay of a job into the queue
	hop     time.Duration  // delay from the queue to a worker
	gap     time.Duration  // minimum time between two starts; 0: none
	next    time.Duration  // earliest time at which the next job may start
	lease   time.Duration
	joining bool                // workers join at this instant
	wanted  int                 // number of cpus that queued jobs need
	tickAt  time.Duration       // time of the scheduled tick; 0: none
	bytes   func(t *task) int64 // number of bytes transferred with a task
	takes   func(t *task, h *member) (way, took time.Duration, status execution.Status)
}

// defaultLease is a worker's lease including its margin, and heartbeat is the interval of its heartbeats, as in
// production.
const (
	defaultLease = 20 * time.Second
	heartbeat    = 3 * time.Second
)

// tick is the interval at which production's dispatcher checks for timeouts.
const tick = matching.RecallAfter / 2

// An entry is a job in the cluster.
type entry struct {
	seq      int64
	tasks    []task
	leaf     bool
	ordered  bool
	recalled bool
	match    matching.Job[*entry]
	results  int // number of results received from its tasks
	life     int // changed to invalidate the job's scheduled events
	begun    time.Time
	way      time.Duration // transfer time of its task's files, from begun on
}

func (e *entry) needs() matching.Resources { return e.match.Needs }
func (e *entry) cpus() int                 { return e.match.Needs.CPUs }

// A task is the part of an execution.Task that matters here: a large workflow may have many tasks queued.
type task struct {
	index, attempt int
	estimate       time.Duration
}

// tasksOf appends the tasks of a job to those of other jobs, and returns all of them and its own.
func tasksOf(j *execution.Job, others []task) (all, own []task) {
	all = others
	for i := range j.Tasks {
		t := &j.Tasks[i]
		all = append(all, task{t.Index, t.Attempt, t.Estimate})
	}
	return all, all[len(others):len(all):len(all)]
}

// submit queues jobs after the time that jobs take to enter the queue.
func (c *cluster) submit(jobs []execution.Job) {
	entries, block := make([]*entry, 0, len(jobs)), make([]entry, len(jobs))
	tasks := make([]task, 0, len(jobs))
	for i := range jobs {
		e, j := &block[i], &jobs[i]
		e.seq, e.leaf, e.ordered = j.Seq, j.Leaf, j.Ordered
		tasks, e.tasks = tasksOf(j, tasks)
		e.match = matching.Job[*entry]{
			Value: e, Run: &c.jobs, Class: j.Class, Priority: j.Priority,
			Needs: matching.Resources{Resources: j.Needs(), Time: j.Estimate()},
		}
		if first := j.Tasks[0]; first.Attempt == 1 && c.now == 0 {
			if _, ok := c.begun[first.Index]; ok {
				c.begun[first.Index] = e
				continue
			}
		}
		c.wanted += j.CPUs
		entries = append(entries, e)
	}
	if c.way == 0 {
		c.queue(entries)
		return
	}
	c.after(c.way, func() { c.queue(entries) })
}

// withdraw returns queued jobs to the run.
func (c *cluster) withdraw(seqs []int64) {
	gone := c.matcher.RemoveFunc(&c.jobs, func(e *entry) bool { return slices.Contains(seqs, e.seq) })
	if len(gone) == 0 {
		return
	}
	back := &execution.Giveback{Reason: "withdrawn"}
	for _, e := range gone {
		c.wanted -= e.cpus()
		back.Seqs = append(back.Seqs, e.seq)
	}
	slices.Sort(back.Seqs)
	c.run.note(execution.Record{Returned: back})
}

// queue adds jobs and matches them with workers.
func (c *cluster) queue(entries []*entry) {
	for _, e := range entries {
		c.matcher.Push(&e.match)
	}
	c.matchAll()
}

// kill drops queued jobs that are no longer needed. Jobs already assigned to a worker continue; in production they end
// at once, which frees resources slightly earlier.
func kill(c *cluster, seqs []int64) {
	if len(seqs) == 0 {
		return
	}
	for _, e := range c.matcher.RemoveFunc(&c.jobs, func(e *entry) bool { return slices.Contains(seqs, e.seq) }) {
		c.wanted -= e.cpus()
	}
}

func (c *cluster) matchAll() {
	for slot, taken := range c.matcher.Match(c.time()) {
		c.assign(c.of[slot], taken)
	}
	c.attend()
}

// matchOne assigns jobs to one worker.
func (c *cluster) matchOne(m *member) {
	for slot, taken := range c.matcher.Match(c.time(), &m.slot) {
		c.assign(c.of[slot], taken)
	}
	c.attend()
}

// assign records the assignment of jobs to a worker, and sends them.
func (c *cluster) assign(m *member, taken []*entry) {
	for _, e := range taken {
		c.wanted -= e.cpus()
		c.record(m, e)
	}
	m.coming = append(m.coming, taken...)
	if c.gap == 0 {
		c.after(c.hop, func() { m.arrive(taken) })
		return
	}
	for i := range taken {
		c.next = max(c.now+c.hop, c.next)
		c.at(c.next, func() { m.arrive(taken[i : i+1]) })
		c.next += c.gap
	}
}

// record records the assignment of a job to a worker.
func (c *cluster) record(m *member, e *entry) {
	var a struct { // one allocation for the usual job of one task
		execution.Assignment
		part [1]execution.Part
	}
	a.Seq, a.Worker, a.Parts = e.seq, m.slot.ID, a.part[:0]
	for i := range e.tasks {
		t := &e.tasks[i]
		a.Parts = append(a.Parts, execution.Part{Task: int32(t.index), Attempt: int32(t.attempt)})
	}
	c.run.note(execution.Record{Assigned: &a.Assignment})
}

// results processes results from a worker.
func (c *cluster) results(m *member, all []result) {
	for _, r := range all {
		o, e := r.outcome, r.of
		e.results++
		if o.Status == execution.Done || o.Status == execution.Failed {
			c.jobs.Observe(o.Ended.Time().Sub(o.Started.Time()), r.estimate, m.slot.Speed)
		}
		if e.results == len(e.tasks) {
			m.slot.Release(&e.match, c.time())
		}
		c.run.note(execution.Record{Finished: o})
	}
	c.matchOne(m)
}

// returned handles jobs that a worker will not run: it restores recalled jobs to their places in the queue, and gives
// the others back to the run.
func (c *cluster) returned(m *member, entries []*entry, reason string) {
	if len(entries) == 0 {
		return
	}
	back := &execution.Giveback{Reason: reason}
	m.spoke = c.now
	for _, e := range entries {
		m.slot.Release(&e.match, c.time())
		e.life++
		if e.recalled && e.results == 0 {
			e.recalled = false
			c.matcher.Restore(&e.match)
			c.wanted += e.cpus()
		} else {
			back.Seqs = append(back.Seqs, e.seq)
		}
	}
	if len(back.Seqs) > 0 {
		c.run.note(execution.Record{Returned: back})
	}
	c.matchAll()
}

// join makes a worker available for jobs. Jobs are assigned after all workers have joined that come at this instant:
// which of them comes first is chance, and the assignment should not depend on it.
func (c *cluster) join(m *member) {
	i, _ := slices.BinarySearchFunc(c.members, m, byID)
	c.members = slices.Insert(c.members, i, m)
	c.of[&m.slot] = m
	m.joined, m.spoke = c.now, c.now
	c.run.changed = true
	c.matcher.Open(&m.slot)
	if !c.joining {
		c.joining = true
		c.after(0, func() {
			c.joining = false
			c.matchAll()
		})
	}
}

func byID(a, b *member) int { return strings.Compare(a.slot.ID, b.slot.ID) }

// close stops the assignment of jobs to a worker.
func (c *cluster) close(m *member) {
	c.matcher.Close(&m.slot)
	c.run.changed = true
}

// drop removes a worker that has left or is lost.
func (c *cluster) drop(m *member) {
	c.close(m)
	is := func(other *member) bool { return other == m }
	c.members, c.silent = slices.DeleteFunc(c.members, is), slices.DeleteFunc(c.silent, is)
	delete(c.of, &m.slot)
}

// attend schedules the next tick that may have an effect: a worker is silent for longer than its lease, or may get
// other jobs, or has to return some, merely because time passes.
func (c *cluster) attend() {
	at := c.gridAfter(tick)
	if c.tickAt > 0 && c.tickAt <= at {
		return
	}
	next := Never
	for _, m := range c.silent {
		next = min(next, (m.spoke+c.lease)/tick*tick+tick)
	}
	if changes, ok := c.matcher.ChangesAt(c.time()); ok {
		next = min(next, (min(Never, c.since(changes))+tick-1)/tick*tick)
	}
	at = max(at, next)
	if at >= Never || c.tickAt > 0 && c.tickAt <= at {
		return
	}
	c.tickAt = at
	c.at(at, func() {
		if c.tickAt == at {
			c.tickAt = 0
			c.tick()
		}
	})
}

// tick handles timeouts: it drops workers that have been silent for too long, and recalls jobs that have waited for too
// long at a worker.
func (c *cluster) tick() {
	for _, m := range slices.Clone(c.members) {
		if m.silent == nil {
			m.recall(m.slot.Overdue(c.time()))
		}
	}
	for _, m := range slices.Clone(c.silent) {
		if c.now-m.spoke > c.lease {
			c.lose(m)
		}
	}
	c.matchAll()
}

// lose drops a worker that has been silent for longer than its lease, and returns its jobs to the run.
func (c *cluster) lose(m *member) {
	c.drop(m)
	back := &execution.Giveback{
		Started: true, Until: execution.ToMsec(c.time().Add(*m.silent - c.now)),
		Reason: "no sign of life of its worker for longer than its lease",
	}
	for _, e := range slices.Concat(m.running, m.waiting, m.coming) {
		back.Seqs = append(back.Seqs, e.seq)
	}
	for _, r := range m.fresh { // the task ended, but its result was not received
		back.Seqs = append(back.Seqs, r.of.seq)
	}
	slices.Sort(back.Seqs)
	back.Seqs = slices.Compact(back.Seqs)
	if len(back.Seqs) > 0 {
		c.run.note(execution.Record{Returned: back})
	}
}
