package execution

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// An Execution is the state of a run's tasks. One goroutine owns it.
type Execution struct {
	plan      *plan
	units     *units     // the tasks
	scopes    *scopes    // the subworkflows
	scripts   *scripts   // of tasks and subworkflows
	frontier  *frontier  // the tasks that may be released
	order     *order     // the jobs and subworkflows that wait for their category
	jobs      *jobs      // released and not over
	roster    *roster    // the known workers
	tally     *tally     // of all attempts
	additions *additions // to an open execution

	now   Msec    // when the last record was made
	ripe  []int32 // tasks that are marked to fail and no longer wait
	kills []int64 // jobs that workers may have and that contain cancelled or skipped tasks
	over  []int64 // jobs that ended because of records about other jobs
}

// New begins an execution. Check must accept the spec. The execution keeps the spec's slices, which must not change.
func New(s Spec) *Execution {
	p := newPlan(s)
	us := newUnits(p)
	x := &Execution{
		plan: p, units: us, scopes: newScopes(p), scripts: newScripts(p), frontier: newFrontier(p, us), order: &order{},
		jobs: newJobs(p, us), roster: newRoster(), additions: &additions{},
		tally: &tally{ways: map[int32]Way{}, hours: hours{}},
	}
	x.setUp()
	return x
}

// setUp marks the units that were done before, and frees those that do not wait for others.
func (x *Execution) setUp() {
	for i := range x.plan.Tasks {
		if x.plan.Tasks[i].Done {
			x.units.move(int32(i), onDone)
			x.countDone(i)
		}
	}
	for k := range x.plan.Subs {
		s := int32(k + 1)
		if x.plan.scope.done(x.plan.scope.unitOf(s)) {
			x.scopes.at(s).start()
			x.scopes.move(s, onDone)
			x.countDone(x.plan.scope.begin(s))
			x.countDone(x.plan.scope.end(s))
		}
	}
	for s := range x.scopes.within(0) {
		x.count(s)
	}
	x.prepareAll(0)
	for i := range int32(len(x.plan.Tasks)) {
		if x.units.at(i).open() && x.units.state(i) == StateWaiting && !x.held(i) {
			x.free(i)
		}
	}
	x.frontier.restart()
	x.check(0)
	x.leaveAborted()
}

// Next returns the time at which the next loose task may be released or the next deferred script started; ok is false
// if there are none.
func (x *Execution) Next() (at time.Time, ok bool) {
	first, ok := x.frontier.next()
	if ok && first == 0 {
		return time.Time{}, true
	}
	for _, d := range x.scripts.deferred {
		first = min(cmp.Or(first, d.at), d.at)
	}
	return first.Time(), first != 0
}

// Expected returns the jobs that may be running, by worker, in the order of their release. Their workers are
// awaited from now on: see Shortage.
func (x *Execution) Expected() map[string][]Job {
	jobs := make(map[string][]Job)
	for _, j := range slices.SortedFunc(slices.Values(x.jobs.assigned()), compareJobs) {
		j.awaited = true
		name := x.roster.workers[j.worker].name
		tasks := x.jobs.remaining(j)
		jobs[name] = append(jobs[name], x.jobOf(j, tasks, make([]Task, len(tasks))))
	}
	return jobs
}

// Jobs returns the number of jobs that have been released and are not over.
func (x *Execution) Jobs() int { return len(x.jobs.bySeq) }

// Done reports whether every task is done, failed or skipped, and no task can be added.
func (x *Execution) Done() bool { return x.units.unfinished()+x.scopes.unfinished == 0 && !Takes(x) }

// Counts returns the number of tasks in each state.
func (x *Execution) Counts() corral.RunTasks {
	n := &x.units.count
	return corral.RunTasks{
		Total: len(x.plan.Tasks), Waiting: n[StateWaiting], Ready: n[StatePreparing] + n[StateReady],
		Running: n[StateBehind] + n[StateRunning] + n[StateJudging],
		Done:    n[StateDone], Failed: n[StateFailed], Skipped: n[StateSkipped],
	}
}

// A TaskInfo describes the state of a task and how its last attempt ended. Times are zero if none has ended. While a
// worker has the task, StartedAt is the time at which the worker received it, or at which the previous task in its job
// ended, and EndedAt is zero.
type TaskInfo struct {
	State     corral.TaskState
	Begun     int    // attempts given to workers
	Worker    string // worker of the last attempt
	Exit      int
	Reason    string // why it did not finish
	Cause     Cause
	Changed   []string // inputs that an attempt changed; read-only
	StartedAt time.Time
	EndedAt   time.Time
	CPUTime   time.Duration
	MaxRSSKiB int64

	ReadBytes, WrittenBytes int64

	AddedAt time.Time // to an open run
	OverAt  time.Time // in an open run, even if no attempt has ended
}

// Task returns the state of the task with this index.
func (x *Execution) Task(index int) TaskInfo {
	i := int32(index)
	u, e := x.units.at(i), x.units.extra(i)
	info := TaskInfo{
		State: u.state.task(), Begun: int(u.attempt), Worker: x.roster.workers[u.worker].name, Exit: int(u.exit),
		Reason: e.why, Cause: e.cause, Changed: e.changed,
		StartedAt: u.started.Time(), EndedAt: u.ended.Time(), CPUTime: u.cpu.sub(0), MaxRSSKiB: u.rssKiB,
		ReadBytes: u.read, WrittenBytes: u.written,
	}
	if x.plan.Open {
		x.additions.describe(i, u, &info)
	}
	switch u.state {
	case StateBehind, StateRunning:
		info.StartedAt, info.EndedAt = u.job.busyFrom.Time(), time.Time{}
	case StateWaiting, StatePreparing, StateReady, StateSkipped:
		info.Begun-- // the current attempt has not begun, or never will
	case StateDone, StateFailed:
		if x.plan.Tasks[i].Done || u.state == StateFailed && x.neverBegan(i) {
			info.Begun--
		}
	}
	return info
}

// Failed returns the indices of tasks that failed permanently, in the order of the failures. The slice is read-only.
func (x *Execution) Failed() []int { return x.units.failures() }

// Report compares the time that a run took with the time that it could have taken. It returns nil if no task ran.
func (x *Execution) Report(createdAt time.Time) *corral.RunReport {
	t := x.tally
	if t.firstStarted == 0 {
		return nil
	}
	created := ToMsec(createdAt)
	took := make([]time.Duration, len(x.plan.Tasks)) // of the last attempt at each task that is done
	cpus := make([]int, len(took))
	var sum time.Duration
	for i := range took {
		cpus[i] = x.plan.Tasks[i].CPUs
		if u := x.units.at(int32(i)); u.state == StateDone && u.started != 0 {
			took[i] = max(0, u.ended.sub(u.started))
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

// ratio returns a ÷ b, or 0 if b is 0, because JSON cannot represent infinity.
func ratio(a, b corral.Seconds) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
