package execution

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// An Execution is what became of a run's tasks so far. One goroutine owns it.
type Execution struct {
	plan     *plan
	frontier frontier
	attempts attempts
	book     book
	control  *control
	roster   roster
}

// New begins an execution. The spec's slices stay the caller's and must not change; it
// must be one that Check accepts.
func New(s Spec) *Execution {
	p := newPlan(s)
	x := &Execution{
		plan: p, frontier: newFrontier(p), attempts: newAttempts(p),
		book: book{plan: p, entries: map[int64]*entry{}, of: make([]*entry, len(s.Tasks)), nextSeq: 1,
			inUse: make([]int, len(s.Limits))},
		roster: roster{workers: []worker{{}}, index: map[string]int32{"": 0}},
	}
	x.control = newControl(p, &x.frontier, &x.attempts, &x.book)
	return x
}

// Next returns when the next loose task may be released, or the next deferred script be started; ok is false if there
// is none.
func (x *Execution) Next() (at time.Time, ok bool) {
	f := &x.frontier
	if len(f.loose) > 0 {
		return time.Time{}, true
	}
	var first Msec
	if len(f.waiting) > 0 {
		first = f.waiting[0].at
	}
	for _, d := range x.control.scripts.deferred {
		first = min(cmp.Or(first, d.at), d.at)
	}
	return first.Time(), first != 0
}

// Expected returns the jobs that may be running, by worker, in the order of their release. Their workers are
// awaited from now on: see Shortage.
func (x *Execution) Expected() map[string][]Job {
	jobs := make(map[string][]Job)
	for _, e := range slices.SortedFunc(maps.Values(x.book.entries), inOrder) {
		if e.worker == 0 {
			continue
		}
		e.awaited = true
		name := x.roster.workers[e.worker].name
		jobs[name] = append(jobs[name], jobOf(x, e, x.book.remaining(e)))
	}
	return jobs
}

// Jobs returns how many jobs are released and not over.
func (x *Execution) Jobs() int { return len(x.book.entries) }

// Done reports whether every task is done, failed or skipped, and no other can be added.
func (x *Execution) Done() bool { return x.frontier.nodes.Done() && !Takes(x) }

// Counts returns how many tasks do what.
func (x *Execution) Counts() corral.RunTasks {
	c := x.control.tasks()
	return corral.RunTasks{
		Total: len(x.plan.Tasks), Waiting: c.Waiting - x.book.behind,
		Ready:   c.Ready - (x.book.running - x.book.behind) - x.control.scripts.posts,
		Running: x.book.running + x.control.scripts.posts,
		Done:    c.Done, Failed: c.Failed, Skipped: c.Skipped,
	}
}

// A TaskInfo says what a task is doing and how its last attempt ended. Times are zero if none has ended. While a worker
// has the task, StartedAt is when it was given it, or when the task before it in its job ended, and EndedAt is zero.
type TaskInfo struct {
	State     corral.TaskState
	Begun     int    // attempts that a worker was given
	Worker    string // of the last of them
	Exit      int
	Reason    string // why it did not finish
	Cause     Cause
	Changed   []string // inputs that an attempt has changed; it stays the execution's
	StartedAt time.Time
	EndedAt   time.Time
	CPUTime   time.Duration
	MaxRSSKiB int64

	ReadBytes, WrittenBytes int64

	AddedAt time.Time // to an open run
	OverAt  time.Time // in an open run, whether or not an attempt has ended
}

// Task tells of the task with this index.
func (x *Execution) Task(index int) TaskInfo {
	i := int32(index)
	t := &x.attempts.tasks[i]
	info := TaskInfo{
		State: corral.TaskState(x.frontier.state(i).String()), Begun: int(t.attempt),
		Worker: x.roster.workers[t.worker].name, Exit: int(t.exit), Reason: x.attempts.notes[i],
		Cause: x.attempts.causes[i], Changed: x.attempts.inputs[i],
		StartedAt: t.started.Time(), EndedAt: t.ended.Time(), CPUTime: t.cpu.sub(0), MaxRSSKiB: t.rssKiB,
		ReadBytes: t.read, WrittenBytes: t.written,
	}
	tellGrown(x, i, &info)
	e, u := x.book.of[i], x.control.units[i]
	switch {
	case e != nil && e.worker != 0:
		info.State = corral.TaskRunning
		info.StartedAt, info.EndedAt = e.busyFrom.Time(), time.Time{}
	case u != nil && u.stage == stagePost:
		info.State = corral.TaskRunning
	case info.State == corral.TaskReady && x.control.held(i):
		info.State = corral.TaskWaiting
	}
	switch {
	case info.State == corral.TaskReady, info.State == corral.TaskWaiting, info.State == corral.TaskSkipped,
		x.plan.Tasks[i].Done, info.State == corral.TaskFailed && x.attempts.unbegun(i):
		info.Begun-- // the current attempt is still to come, or never will
	}
	return info
}

// Failed returns the indices of tasks that failed for good, in the order of their failing. The slice stays the
// execution's.
func (x *Execution) Failed() []int { return x.attempts.tally.failed }

// Report compares what a run that was created at an instant took with what it could have taken. It is nil if no
// task ran.
func (x *Execution) Report(createdAt time.Time) *corral.RunReport {
	t := &x.attempts.tally
	if t.firstStarted == 0 {
		return nil
	}
	created := ToMsec(createdAt)
	took := make([]time.Duration, len(x.plan.Tasks)) // by the last attempt of each task that is done
	cpus := make([]int, len(took))
	var sum time.Duration
	for i := range took {
		cpus[i] = x.plan.Tasks[i].CPUs
		if t := &x.attempts.tasks[i]; x.frontier.state(int32(i)) == dag.Done && t.started != 0 {
			took[i] = max(0, t.ended.sub(t.started))
			sum += took[i]
		}
	}
	r := &corral.RunReport{
		Makespan:       corral.Seconds(max(0, t.lastEnded.sub(created))),
		TaskTime:       corral.Seconds(sum),
		CPUs:           x.roster.cpus,
		CriticalPath:   corral.Seconds(x.plan.Graph.CriticalPath(took)),
		LostWork:       corral.Seconds(t.lost),
		Requeued:       t.requeued,
		RetriesUsed:    t.retries,
		MemoryKills:    t.overMemory,
		LargerRetries:  t.larger,
		WaitForWorkers: corral.Seconds(max(0, t.firstStarted.sub(created))),
	}
	if r.CPUs > 0 {
		r.LowerBound = corral.Seconds(dag.LowerBound(x.plan.Graph, took, cpus, r.CPUs))
	}
	if schedule, ok := dag.ListSchedule(x.plan.Graph, took, cpus, r.CPUs); ok {
		r.ListSchedule = corral.Seconds(schedule)
	}
	overheads(x, r)
	r.Parallelism = ratio(r.TaskTime, r.Makespan)
	r.OverBound = ratio(r.Makespan, r.LowerBound)
	r.OverList = ratio(r.Makespan, r.ListSchedule)
	return r
}

// ratio is a ÷ b, 0 if b is 0: JSON has no infinity.
func ratio(a, b corral.Seconds) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
