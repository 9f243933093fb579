package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A cluster is the dispatcher of a personal cluster: it keeps the books for a matcher, as embedded/dispatch does, and
// tells the run what happens. Nothing goes wrong between it and its workers but what Failures say, so of production's
// bookkeeping most is not needed.
type cluster struct {
	*clock
	run     *run
	matcher matching.Matcher[*entry]
	jobs    matching.Run[*entry] // the run's pace
	members []*member            // by the ids of their slots
	of      map[*matching.Slot[*entry]]*member
	way     time.Duration // of a job into the queue
	hop     time.Duration // from there to a worker
	gap     time.Duration // between two starts; 0: any number at once
	next    time.Duration // no start before
	lease   time.Duration
	wanted  int                           // cpus that queued jobs need
	tickAt  time.Duration                 // when a tick is planned; 0: none is
	bytes   func(t *execution.Task) int64 // that travel with a task
	takes   func(t *execution.Task, h *member) (way, took time.Duration, status execution.Status)
}

// defaultLease is a worker's lease and the margin beyond it, heartbeat is between its signs of life, as in production.
const (
	defaultLease = 20 * time.Second
	heartbeat    = 3 * time.Second
)

// tick is how often production's dispatcher looks at the clock.
const tick = matching.RecallAfter / 2

// An entry is a job that the cluster has.
type entry struct {
	job      execution.Job
	match    matching.Job[*entry]
	recalled bool
	results  int // of its tasks, that the dispatcher has
	life     int // changes when what the job does on its worker is void
	begun    time.Time
	way      time.Duration // that files of its task have, from begun on
}

func (e *entry) key() int64                { return e.job.Seq }
func (e *entry) needs() matching.Resources { return e.match.Needs }

// submit queues jobs, once they have come so far.
func (c *cluster) submit(jobs []execution.Job) {
	entries := make([]entry, len(jobs))
	for i := range jobs {
		e, j := &entries[i], &jobs[i]
		e.job = *j
		e.match = matching.Job[*entry]{
			Value: e, Run: &c.jobs, Class: j.Class, Priority: j.Priority,
			Needs: matching.Resources{Resources: j.Needs(), Time: j.Estimate()},
		}
		c.wanted += j.CPUs
	}
	if c.way == 0 {
		c.queue(entries)
		return
	}
	c.after(c.way, func() { c.queue(entries) })
}

// withdraw gives the run back those jobs that are queued.
func (c *cluster) withdraw(seqs []int64) {
	gone := c.matcher.RemoveFunc(&c.jobs, func(e *entry) bool { return slices.Contains(seqs, e.key()) })
	if len(gone) == 0 {
		return
	}
	back := &execution.Giveback{Reason: "withdrawn"}
	for _, e := range gone {
		c.wanted -= e.job.CPUs
		back.Seqs = append(back.Seqs, e.key())
	}
	slices.Sort(back.Seqs)
	c.run.note(execution.Record{Returned: back})
}

// queue gives workers what they can take of jobs that have come.
func (c *cluster) queue(entries []entry) {
	for i := range entries {
		c.matcher.Push(&entries[i].match)
	}
	c.matchAll()
}

// kill drops jobs that nobody waits for any more. Those that a worker has go on: that they end at once in production
// makes room a little sooner.
func kill(c *cluster, seqs []int64) {
	if len(seqs) == 0 {
		return
	}
	for _, e := range c.matcher.RemoveIf(&c.jobs, func(e *entry) bool { return slices.Contains(seqs, e.key()) }) {
		c.wanted -= e.job.CPUs
	}
}

func (c *cluster) matchAll() {
	for slot, taken := range c.matcher.Match(c.time()) {
		c.assign(c.of[slot], taken)
	}
	for _, m := range c.members {
		c.attend(m)
	}
}

// matchOne gives one worker what it can take.
func (c *cluster) matchOne(m *member) {
	for slot, taken := range c.matcher.Match(c.time(), &m.slot) {
		c.assign(c.of[slot], taken)
	}
	c.attend(m)
}

// assign records jobs as given to a worker, and sends them there.
func (c *cluster) assign(m *member, taken []*entry) {
	for _, e := range taken {
		c.wanted -= e.job.CPUs
		parts := make([]execution.Part, len(e.job.Tasks))
		for i := range e.job.Tasks {
			t := &e.job.Tasks[i]
			parts[i] = execution.Part{Task: int32(t.Index), Attempt: int32(t.Attempt)}
		}
		c.run.note(execution.Record{Assigned: &execution.Assignment{Seq: e.key(), Worker: m.slot.ID, Parts: parts}})
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

// results takes in what a worker sent.
func (c *cluster) results(m *member, all []result) {
	for _, r := range all {
		o, e := r.outcome, r.of
		e.results++
		if o.Status == execution.Done || o.Status == execution.Failed {
			c.jobs.Observe(o.Ended.Time().Sub(o.Started.Time()), r.estimate)
		}
		if e.results == len(e.job.Tasks) {
			m.slot.Release(&e.match, c.time())
		}
		c.run.note(execution.Record{Finished: o})
	}
	c.matchOne(m)
}

// returned takes jobs back that a worker will not run: those that were recalled get their old places, the others go
// back to the run.
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
			c.wanted += e.job.CPUs
		} else {
			back.Seqs = append(back.Seqs, e.key())
		}
	}
	if len(back.Seqs) > 0 {
		c.run.note(execution.Record{Returned: back})
	}
	c.matchAll()
}

// join lets a worker take jobs.
func (c *cluster) join(m *member) {
	i, _ := slices.BinarySearchFunc(c.members, m, byID)
	c.members = slices.Insert(c.members, i, m)
	c.of[&m.slot] = m
	m.joined, m.spoke = c.now, c.now
	c.run.changed = true
	c.matcher.Open(&m.slot)
	c.matchOne(m)
}

func byID(a, b *member) int { return strings.Compare(a.slot.ID, b.slot.ID) }

// close keeps new jobs from a worker.
func (c *cluster) close(m *member) {
	c.matcher.Close(&m.slot)
	c.run.changed = true
}

// drop forgets a worker that has left.
func (c *cluster) drop(m *member) {
	c.close(m)
	c.members = slices.DeleteFunc(c.members, func(other *member) bool { return other == m })
	delete(c.of, &m.slot)
}

// attend plans a tick if time alone may change what a worker gets, or if it is silent.
func (c *cluster) attend(m *member) {
	at := c.gridAfter(tick)
	if c.tickAt > 0 && c.tickAt <= at || !m.restless() {
		return
	}
	if m.silent != nil { // there is nothing to see before
		at = max(at, (m.spoke+c.lease)/tick*tick+tick)
	}
	if c.tickAt > 0 && c.tickAt <= at {
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

// tick does what the passing of time brings: silent workers are given up, and what waits for too long is recalled.
func (c *cluster) tick() {
	var lost []*member
	for _, m := range slices.Clone(c.members) {
		if m.silent != nil && c.now-m.spoke > c.lease {
			lost = append(lost, m)
		} else if m.silent == nil {
			m.recall(m.slot.Overdue(c.time()))
		}
	}
	for _, m := range lost {
		c.lose(m)
	}
	c.matchAll()
}

// lose gives up a worker of which nothing was heard for longer than its lease.
func (c *cluster) lose(m *member) {
	c.drop(m)
	back := &execution.Giveback{
		Started: true, Until: execution.ToMsec(c.time().Add(*m.silent - c.now)),
		Reason: "no sign of life of its worker for longer than its lease",
	}
	for _, e := range slices.Concat(m.running, m.waiting, m.coming) {
		back.Seqs = append(back.Seqs, e.key())
	}
	for _, r := range m.fresh { // it ended, and that was not heard
		back.Seqs = append(back.Seqs, r.of.key())
	}
	slices.Sort(back.Seqs)
	back.Seqs = slices.Compact(back.Seqs)
	if len(back.Seqs) > 0 {
		c.run.note(execution.Record{Returned: back})
	}
}
