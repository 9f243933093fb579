package sim

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// A member represents one worker from both sides: slot is the dispatcher's view of the worker; room and the lists are
// its actual state. It starts waiting jobs in the same way as internal/embedded/worker, using the same rules from
// package matching.
type member struct {
	c     *cluster
	pilot *pilot
	host  Host
	slot  matching.Slot[*entry]

	room    matching.Room
	coming  []*entry // in transit to the worker
	waiting []*entry // in order of arrival
	running []*entry
	fresh   []result  // not yet sent to the dispatcher
	due     time.Time // when to send the fresh results; zero: not scheduled
	phase   phase

	joined    time.Duration
	spoke     time.Duration // time of the last message other than heartbeats
	idleSince time.Duration
	silent    *time.Duration // time of its host's failure, which the dispatcher has not noticed; nil: no failure
}

// A phase is a stage in the life of a worker.
type phase uint8

const (
	taking phase = iota
	draining
	gone
)

// A result is the result of one execution of a task.
type result struct {
	of       *entry
	estimate time.Duration
	outcome  *execution.Outcome
}

// empty reports whether the worker has no jobs.
func (m *member) empty() bool { return len(m.running)+len(m.waiting)+len(m.coming) == 0 }

// resume continues the jobs that run on the worker from the beginning. The worker must not have joined yet.
func (m *member) resume() {
	var jobs []*matching.Job[*entry]
	for _, e := range m.running {
		jobs = append(jobs, &e.match)
		m.room.Take(e.needs())
		m.c.record(m, e)
		m.begin(e, 0)
	}
	m.slot.Reset(m.c.time(), jobs, nil)
}

// arrive accepts jobs that have reached the worker.
func (m *member) arrive(jobs []*entry) {
	if m.phase == gone {
		return // the jobs have been returned, or are lost
	}
	for _, e := range jobs {
		if i := slices.Index(m.coming, e); i >= 0 {
			m.coming = slices.Delete(m.coming, i, i+1)
			m.waiting = append(m.waiting, e)
		}
	}
	m.start()
}

// start starts waiting jobs in order while there is room. Jobs that need more time than is left are returned.
func (m *member) start() {
	for len(m.waiting) > 0 {
		e := m.waiting[0]
		switch m.room.Judge(m.c.time(), e.needs()) {
		case matching.Keep:
			return
		case matching.Return:
			m.waiting = m.waiting[1:]
			m.c.returned(m, []*entry{e}, "its worker has too little time left")
			m.ended()
		case matching.Start:
			m.waiting = m.waiting[1:]
			m.running = append(m.running, e)
			m.room.Take(e.needs())
			m.begin(e, 0)
		}
	}
}

// begin begins the given task of a job. If too little time is left for a later task of a clustered job, the rest of the
// job is returned.
func (m *member) begin(e *entry, number int) {
	t := &e.tasks[number]
	if number > 0 && m.room.Late(m.c.time(), t.estimate) {
		m.stop(e)
		return
	}
	e.life++
	e.begun = m.c.time()
	life := e.life
	way, took, status := m.c.takes(t, m)
	e.way = wholeUp(way)
	if number > 0 { // only the job's first task incurs the latency
		e.way = max(0, e.way-m.pilot.s.Transfer.Latency)
	}
	m.c.after(e.way+took, func() {
		if e.life == life {
			m.end(e, number, status, "")
		}
	})
}

// stop returns the remaining tasks of a job that has run some of its tasks.
func (m *member) stop(e *entry) {
	m.over(e)
	m.flush()
	m.c.returned(m, []*entry{e}, "its worker stopped before its last task")
}

// over removes a job from the worker, and starts waiting jobs.
func (m *member) over(e *entry) {
	e.life++
	i := slices.Index(m.running, e)
	m.running = slices.Delete(m.running, i, i+1)
	m.room.Free(e.needs())
	if m.phase != gone {
		m.start()
	}
	m.ended()
}

// ended records the current time if the worker has no jobs left.
func (m *member) ended() {
	if m.empty() && m.phase != gone {
		m.idleSince = m.c.now
		m.pilot.idle(m)
	}
}

// end records the result of a task.
func (m *member) end(e *entry, number int, status execution.Status, reason string) {
	t := &e.tasks[number]
	now := m.c.time()
	way := min(e.way, now.Sub(e.begun))
	o := &execution.Outcome{
		Seq: e.seq, Task: int32(t.index), Attempt: int32(t.attempt), Status: status,
		Worker: m.slot.ID, Reason: reason,
		Started: execution.ToMsec(e.begun.Add(way)), Ended: execution.ToMsec(now),
	}
	if way > 0 {
		o.Way = &execution.Way{In: execution.Msec(way.Milliseconds()), Bytes: m.c.bytes(t)}
	}
	switch status {
	case execution.Failed:
		o.Exit, o.Reason = 1, "exit status 1"
	case execution.Cut:
		o.Exit = -1
	}
	m.fresh = append(m.fresh, result{e, t.estimate, o})
	last := number == len(e.tasks)-1
	if last {
		m.over(e)
	}
	if matching.SendNow(len(m.waiting), len(m.fresh)) {
		m.flush()
	} else {
		m.flushLater(now, matching.ResultDelay(e.leaf && status == execution.Done))
	}
	switch {
	case last:
	case m.phase == gone, e.ordered && status != execution.Done:
		m.stop(e)
	default:
		m.begin(e, number+1)
	}
}

// flushLater schedules sending the results after a delay, unless that is already scheduled for an earlier time.
func (m *member) flushLater(now time.Time, delay time.Duration) {
	due := now.Add(delay)
	if !m.due.IsZero() && !due.Before(m.due) {
		return
	}
	m.due = due
	m.c.after(delay, func() { m.due = time.Time{}; m.flush() })
}

// flush sends the unsent results, unless the host has failed.
func (m *member) flush() {
	if all := m.fresh; len(all) > 0 && m.silent == nil {
		m.fresh, m.spoke = nil, m.c.now
		m.c.results(m, all)
	}
}

// recall gives jobs that have not started back to the dispatcher.
func (m *member) recall(jobs []*entry) {
	var back []*entry
	for _, e := range jobs {
		if i := slices.Index(m.waiting, e); i >= 0 && !e.recalled {
			m.waiting = slices.Delete(m.waiting, i, i+1)
			e.recalled = true
			back = append(back, e)
		}
	}
	m.c.returned(m, back, "recalled")
}

// drain stops the worker from accepting jobs, and returns the jobs that have not started.
func (m *member) drain() {
	if m.phase != taking {
		return
	}
	m.phase = draining
	m.c.close(m)
	back := slices.Concat(m.waiting, m.coming)
	m.waiting, m.coming = nil, nil
	m.c.returned(m, back, "its worker leaves")
}

// leave ends the worker in an orderly way: running tasks are cut off, and their results are sent.
func (m *member) leave(reason string) {
	if m.phase == gone {
		return
	}
	m.drain()
	m.phase = gone
	for _, e := range slices.Clone(m.running) {
		m.end(e, e.results+m.unsent(e), execution.Cut, "its worker had to leave: "+reason)
	}
	m.flush()
	m.c.drop(m)
	m.c.matchAll()
}

// unsent returns the number of results of a job that the dispatcher has not received.
func (m *member) unsent(e *entry) (n int) {
	for _, r := range m.fresh {
		if r.of == e {
			n++
		}
	}
	return n
}

// vanish ends the worker abruptly because its host has failed: the dispatcher sees a broken connection.
func (m *member) vanish() {
	if m.phase == gone {
		return
	}
	since := m.c.now
	m.phase, m.silent = gone, &since
	m.spoke = max(m.spoke, m.joined+(m.c.now-m.joined)/heartbeat*heartbeat)
	m.c.close(m)
	for _, e := range m.running {
		e.life++
	}
	m.c.silent = append(m.c.silent, m)
	m.c.attend()
}

// worker returns the dispatcher's record of the worker.
func (m *member) worker() corral.Worker {
	return corral.Worker{
		ID: m.slot.ID, CPUs: m.slot.Host.CPUs, MemoryMiB: m.slot.Host.MemoryMiB,
		GPUs: m.slot.Host.GPUs, DiskMiB: m.slot.Host.DiskMiB, EndsAt: m.slot.EndsAt, Speed: m.slot.Speed,
		Connected: m.silent == nil, Draining: m.phase != taking,
	}
}
