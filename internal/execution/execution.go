package execution

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
)

// An Execution is what became of a run's tasks so far. One goroutine owns it.
type Execution struct {
	plan     *plan
	frontier frontier
	attempts attempts
	book     book
	roster   roster
}

// New begins an execution. The spec's slices stay the caller's and must not change.
func New(s Spec) *Execution {
	p := newPlan(s)
	return &Execution{
		plan: p, frontier: newFrontier(p), attempts: newAttempts(p),
		book:   book{entries: map[int64]*entry{}, of: make([]*entry, len(s.Tasks)), nextSeq: 1},
		roster: roster{workers: []worker{{}}, index: map[string]int32{"": 0}},
	}
}

// Release makes jobs of the loose tasks whose time has come, highest upward rank first. offer is the latest
// known; it matters only for clustered jobs, see split. A Job's Run, Dir and Mark, and what its tasks run, are
// for the caller to fill in.
func (x *Execution) Release(now time.Time, offer Offer) []Job {
	var lists [][]int32
	for _, tasks := range x.frontier.due(ToMsec(now)) {
		lists = append(lists, x.split(tasks, offer)...)
	}
	slices.SortStableFunc(lists, func(a, b []int32) int { return cmp.Compare(x.plan.highest(b), x.plan.highest(a)) })
	var jobs []Job
	for _, tasks := range lists {
		if slices.ContainsFunc(tasks, func(i int32) bool { return !x.idle(i) }) {
			continue // loose twice, and released a moment ago
		}
		e := x.book.enter(x.book.nextSeq, x.attempts.need(tasks), tasks)
		x.book.nextSeq++
		jobs = append(jobs, x.attempts.job(e, tasks))
	}
	return jobs
}

// split parts tasks that are loose together into jobs: those whose first attempt it is together, the others alone. A
// clustered job that would outlive every worker would never run: its tasks go alone.
func (x *Execution) split(tasks []int32, offer Offer) (lists [][]int32) {
	var first []int32
	for k, i := range tasks {
		_, waits := x.frontier.ends[i]
		switch {
		case waits || !x.idle(i):
		case x.attempts.tasks[i].attempt == 1 && len(tasks) > 1:
			first = append(first, i)
		default:
			lists = append(lists, tasks[k:k+1:k+1])
		}
	}
	switch {
	case len(first) == 0:
		return lists
	case len(offer.Capacities) > 0 && !offer.takes(x.attempts.need(first)):
		return append(lists, slices.Collect(slices.Chunk(first, 1))...)
	}
	return append(lists, first)
}

// idle reports whether task i could be released: it is ready and in no job.
func (x *Execution) idle(i int32) bool {
	return x.frontier.state(i) == dag.Ready && x.book.of[i] == nil
}

// Next returns when the next loose task may be released; ok is false if none is loose.
func (x *Execution) Next() (at time.Time, ok bool) {
	switch f := &x.frontier; {
	case len(f.loose) > 0:
		return time.Time{}, true
	case len(f.waiting) > 0:
		return f.waiting[0].at.Time(), true
	}
	return time.Time{}, false
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
		jobs[name] = append(jobs[name], x.attempts.job(e, x.book.remaining(e)))
	}
	return jobs
}

// Jobs returns how many jobs are released and not over.
func (x *Execution) Jobs() int { return len(x.book.entries) }

// Done reports whether every task is done, failed or skipped.
func (x *Execution) Done() bool { return x.frontier.nodes.Done() }

// Counts returns how many tasks do what.
func (x *Execution) Counts() corral.RunTasks {
	c := x.frontier.nodes.Counts()
	return corral.RunTasks{
		Total: len(x.plan.Tasks), Waiting: c.Waiting, Ready: c.Ready - x.book.running, Running: x.book.running,
		Done: c.Done, Failed: c.Failed, Skipped: c.Skipped,
	}
}

// A TaskInfo says what a task is doing and how its last attempt ended. Times are zero if none has ended.
type TaskInfo struct {
	State     corral.TaskState
	Begun     int    // attempts that a worker was given
	Worker    string // of the last of them
	Exit      int
	Reason    string // why it did not finish
	StartedAt time.Time
	EndedAt   time.Time
	CPUTime   time.Duration
	MaxRSSKiB int64

	ReadBytes, WrittenBytes int64
}

// Task tells of the task with this index.
func (x *Execution) Task(index int) TaskInfo {
	i := int32(index)
	t := &x.attempts.tasks[i]
	info := TaskInfo{
		State: corral.TaskState(x.frontier.state(i).String()), Begun: int(t.attempt),
		Worker: x.roster.workers[t.worker].name, Exit: int(t.exit), Reason: x.attempts.notes[i],
		StartedAt: t.started.Time(), EndedAt: t.ended.Time(), CPUTime: t.cpu.sub(0), MaxRSSKiB: t.rssKiB,
		ReadBytes: t.read, WrittenBytes: t.written,
	}
	if e := x.book.of[i]; e != nil && e.worker != 0 {
		info.State = corral.TaskRunning
	}
	switch info.State {
	case corral.TaskReady, corral.TaskWaiting, corral.TaskSkipped:
		info.Begun-- // the current attempt is still to come
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
