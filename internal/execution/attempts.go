package execution

import (
	"cmp"
	"time"
)

// Back-off before a failed task is tried again: the first time at once, since most failures that pass have
// passed by then; then backoffMin, doubled for each further failure, at most backoffMax.
const (
	backoffMin = time.Second
	backoffMax = time.Minute
)

func backoff(failures int32) time.Duration {
	if failures <= 1 {
		return 0
	}
	return min(backoffMin<<min(failures-2, 16), backoffMax)
}

// attempts knows of each task the number of its current attempt and how the one before it ended. An attempt number is
// never used twice, because it names a directory that an attempt of a lost worker may still write into.
type attempts struct {
	plan   *plan
	tasks  []taskState
	notes  map[int32]string        // why the last attempt did not finish; only of tasks that failed or were lost
	longer map[int32]time.Duration // estimates raised by a cut
	floors map[int32]int32         // attempts that a gap in the journal may have used
	ways   map[int32]Way           // of the files of the last attempt that ended, where they travelled
	tally  tally
}

// taskState is kept for each of up to hundreds of thousands of tasks, hence its small types.
type taskState struct {
	started, ended Msec // of the last attempt that ended
	cpu            Msec // that it used
	rssKiB         int64
	read, written  int64 // bytes
	attempt        int32
	worker         int32 // of the last attempt that was assigned; 0 is none
	exit           int32 // of the last attempt that ended
	failures       int32 // since the beginning, or since the run was resumed
}

// A tally sums what the report needs and no task remembers.
type tally struct {
	firstStarted Msec
	lastEnded    Msec
	lost         time.Duration
	requeued     int
	retries      int
	failed       []int // for good, in order of their failing
}

func newAttempts(p *plan) attempts {
	a := attempts{
		plan: p, tasks: make([]taskState, len(p.Tasks)),
		notes: map[int32]string{}, longer: map[int32]time.Duration{}, floors: map[int32]int32{},
		ways: map[int32]Way{},
	}
	for i := range a.tasks {
		a.tasks[i].attempt = 1
	}
	return a
}

// current reports whether p is the current attempt of a task.
func (a *attempts) current(p Part) bool {
	return p.Task >= 0 && int(p.Task) < len(a.tasks) && a.tasks[p.Task].attempt == p.Attempt
}

// next gives task i its next attempt number.
func (a *attempts) next(i int32) {
	a.tasks[i].attempt = max(a.tasks[i].attempt, a.floors[i]) + 1
}

// need returns what a job of these tasks asks of a worker: they run one after another. A task that was cut is
// known to need longer than its estimate.
func (a *attempts) need(tasks []int32) need {
	n := need{of: a.plan.Tasks[tasks[0]].Needs()}
	for _, i := range tasks {
		n.time += a.estimate(i)
	}
	return n
}

// estimate is how long task i is believed to run: as the workflow says, or longer if it was cut after a longer time.
func (a *attempts) estimate(i int32) time.Duration { return max(a.plan.Tasks[i].Estimate, a.longer[i]) }

// job returns what the cluster is given to make the current attempts at tasks, which are those still in e.
func (a *attempts) job(e *entry, tasks []int32) Job {
	of := e.need.of
	j := Job{
		Seq: e.seq, CPUs: of.CPUs, MemoryMiB: of.MemoryMiB, GPUs: of.GPUs, DiskMiB: of.DiskMiB,
		Priority: a.plan.highest(tasks).Seconds(), Tasks: make([]Task, len(tasks)),
	}
	for k, i := range tasks {
		j.Tasks[k] = Task{
			Index: int(i), ID: a.plan.Tasks[i].ID, Attempt: int(a.tasks[i].attempt), Estimate: a.estimate(i),
		}
	}
	return j
}

// end ends the current attempt of a task, and says whether another follows and after which wait. Without
// another one the task is done or failed for good.
func (a *attempts) end(o *Outcome, worker int32) (again bool, wait time.Duration) {
	t := &a.tasks[o.Task]
	t.started, t.ended, t.cpu, t.rssKiB = o.Started, o.Ended, o.CPU, o.RSSKiB
	t.read, t.written = o.Read, o.Written
	t.exit, t.worker = int32(o.Exit), worker
	delete(a.ways, o.Task)
	if o.Way != nil {
		a.ways[o.Task] = *o.Way
	}
	if o.Started != 0 { // it ran
		from, to := a.span(int(o.Task))
		a.tally.firstStarted = min(cmp.Or(a.tally.firstStarted, from), from)
		a.tally.lastEnded = max(a.tally.lastEnded, to)
	}
	switch o.Status {
	case Done:
		delete(a.notes, o.Task)
		return false, 0
	case Failed:
		return a.fail(o.Task, o.Reason)
	case Cut:
		a.cut(o)
	default: // cancelled: the task could not help it, and nothing was lost that the run still wants
		a.next(o.Task)
	}
	return true, 0
}

// span returns from when until when the last attempt at task i that ended had its worker: with the way of its files.
func (a *attempts) span(i int) (from, to Msec) {
	t, way := &a.tasks[i], a.ways[int32(i)]
	return t.started - way.In, t.ended + way.Out
}

// fail counts a failure of task i.
func (a *attempts) fail(i int32, why string) (again bool, wait time.Duration) {
	t := &a.tasks[i]
	t.failures++
	a.notes[i] = why
	if int(t.failures) > a.plan.Tasks[i].Retries {
		a.tally.failed = append(a.tally.failed, int(i))
		return false, 0
	}
	a.tally.retries++
	a.next(i)
	return true, backoff(t.failures)
}

// cut notes that a worker had to kill a task when it left. Such a task is now known to need longer than it ran. Without
// that it would be cut by every worker to come; with it, either a worker has the time or the run can say that none has.
func (a *attempts) cut(o *Outcome) {
	ran := o.ran()
	a.longer[o.Task] = max(a.longer[o.Task], ran+ran/10)
	a.tally.lost += ran
	a.lose(o.Task, o.Reason)
}

// lose gives task i another attempt that costs no retry.
func (a *attempts) lose(i int32, why string) {
	a.notes[i] = why
	a.tally.requeued++
	a.next(i)
}

// renew gives a task that failed for good all its retries again.
func (a *attempts) renew(i int32) {
	a.tasks[i].failures = 0
	a.next(i)
}
