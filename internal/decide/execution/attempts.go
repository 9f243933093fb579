package execution

import (
	"cmp"
	"slices"
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
	causes map[int32]Cause         // of the last attempt that ended, where it had one
	inputs map[int32][]string      // that any attempt has changed
	more   map[int32]raise         // memory, of tasks that were killed for it
	losses map[int32]int           // workers that were lost while the task ran there
	tally  tally
	spent  spent

	cancelled map[int32]cancelled // tasks that were, until they are retried
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
	overMemory   int // attempts that were killed for it
	requeued     int
	retries      int
	larger       int   // of these, with more memory
	failed       []int // for good, in order of their failing
}

func newAttempts(p *plan) attempts {
	a := attempts{
		plan: p, tasks: make([]taskState, len(p.Tasks)),
		notes: map[int32]string{}, longer: map[int32]time.Duration{}, floors: map[int32]int32{},
		ways: map[int32]Way{}, causes: map[int32]Cause{}, inputs: map[int32][]string{}, more: map[int32]raise{},
		losses: map[int32]int{}, cancelled: map[int32]cancelled{},
		spent: spent{hours: map[spentIn]Spent{}},
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
	a.spent.again(i, a.stretch(i))
	a.tasks[i].attempt = max(a.tasks[i].attempt, a.floors[i]) + 1
}

// need returns what a job of these tasks asks of a worker: they run one after another. A task that was cut is
// known to need longer than its estimate.
func (a *attempts) need(tasks []int32) (n need) {
	for _, i := range tasks {
		n = n.and(need{a.plan.Tasks[i].Needs(), a.estimate(i)})
		n.of.MemoryMiB = max(n.of.MemoryMiB, a.more[i].to)
	}
	return n
}

// A raise is the memory of a task that was killed for going over it, in MiB.
type raise struct {
	from int // what it went over
	to   int // what it is to have
}

// mostMemoryMiB is more than any machine has, and so little that it can be doubled.
const mostMemoryMiB = 1 << 40

// raise gives a task that was killed for its memory twice as much as it had, or used.
func (a *attempts) raise(o *Outcome) {
	a.tally.overMemory++
	had := max(a.plan.Tasks[o.Task].MemoryMiB, a.more[o.Task].to, int(min(max(0, o.RSSKiB)>>10, mostMemoryMiB)))
	a.more[o.Task] = raise{had, 2 * min(had, mostMemoryMiB)}
}

// within returns what a job of one task that asks for n is to ask for: of a task that was killed for its memory no more
// than the largest worker has, as long as that is more than it had.
func (a *attempts) within(n need, tasks []int32, offer Offer) need {
	r, raised := a.more[tasks[0]]
	if !raised || len(tasks) > 1 || offer.takes(n) {
		return n
	}
	rest, largest := n, 0
	rest.of.MemoryMiB = 0
	for _, c := range offer.Capacities {
		if c.fits(rest) {
			largest = max(largest, c.MemoryMiB)
		}
	}
	if largest > r.from && largest < n.of.MemoryMiB {
		n.of.MemoryMiB = largest
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
		Leaf: a.plan.leaves(tasks), Class: a.plan.scope.rules(tasks[0]).Priority,
		Priority: a.plan.highest(tasks).Seconds(), Tasks: make([]Task, len(tasks)),
	}
	for k, i := range tasks {
		j.Tasks[k] = Task{
			Index: int(i), ID: a.plan.Tasks[i].ID, Attempt: int(a.tasks[i].attempt), Estimate: a.estimate(i),
		}
	}
	return j
}

// measure notes how the current attempt of a task ended, and what it used.
func (a *attempts) measure(o *Outcome, worker int32) {
	t := &a.tasks[o.Task]
	t.started, t.ended, t.cpu, t.rssKiB = o.Started, o.Ended, o.CPU, o.RSSKiB
	t.read, t.written = o.Read, o.Written
	t.exit, t.worker = int32(o.Exit), worker
	delete(a.ways, o.Task)
	if o.Way != nil {
		a.ways[o.Task] = *o.Way
	}
	delete(a.causes, o.Task)
	if o.Cause != "" {
		a.causes[o.Task] = o.Cause
	}
	if o.Cause == OverMemory {
		a.raise(o)
	}
	for _, name := range o.Changed {
		if !slices.Contains(a.inputs[o.Task], name) {
			a.inputs[o.Task] = append(a.inputs[o.Task], name)
		}
	}
	if o.Started != 0 { // it ran
		a.tally.ran(a.span(int(o.Task)))
		a.spent.use(o.Task, a.stretch(o.Task))
	}
}

// ran notes from when until when an attempt had its worker.
func (t *tally) ran(from, to Msec) {
	t.firstStarted = min(cmp.Or(t.firstStarted, from), from)
	t.lastEnded = max(t.lastEnded, to)
}

// span returns from when until when the last attempt at task i that ended had its worker: with the way of its files.
func (a *attempts) span(i int) (from, to Msec) {
	t, way := &a.tasks[i], a.ways[int32(i)]
	return t.started - way.In, t.ended + way.Out
}

// fail counts a failure of a task, and says whether another attempt follows and after which wait. Without another one
// the task failed for good.
func (a *attempts) fail(v verdict) (again bool, wait time.Duration) {
	i := v.unit
	t := &a.tasks[i]
	t.failures++
	a.notes[i] = v.why
	if v.forever || int(t.failures) > a.plan.Tasks[i].Retries {
		a.tally.failed = append(a.tally.failed, int(i))
		if v.unbegun {
			t.attempt--
		}
		return false, 0
	}
	a.tally.retries++
	if _, raised := a.more[i]; raised {
		a.tally.larger++
	}
	if !v.unbegun {
		a.next(i)
	}
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

// renew gives a task that failed for good all its retries again. One that was cancelled before its attempt began makes
// that attempt.
func (a *attempts) renew(i int32) {
	a.tasks[i].failures = 0
	delete(a.losses, i)
	if c, was := a.cancelled[i]; !was || c.begun {
		a.next(i)
	}
	delete(a.cancelled, i)
}

// unbegun reports whether the current attempt at a task that is over never began, because the task was cancelled
// before.
func (a *attempts) unbegun(i int32) bool {
	c, was := a.cancelled[i]
	return was && !c.begun
}
