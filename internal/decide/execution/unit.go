package execution

import (
	"slices"
	"time"
)

// A unit is the state of a task and of its last attempt. There may be a million units, hence the small types;
// properties that few tasks have are in an extra.
type unit struct {
	state    State
	charged  bool  // the time of the last attempt counts as used: see hours
	pending  int32 // parents that are not done
	attempt  int32 // number of the current attempt, from 1
	failures int32 // since the beginning or since the run was resumed
	worker   int32 // of the last attempt that was assigned; 0: none
	exit     int32 // of the last attempt that ended, as are the remaining fields except job
	job      *job  // job that contains the task; nil: none

	started, ended Msec
	cpu            Msec
	rssKiB         int64
	read, written  int64 // bytes
}

// open reports whether all parents are done and the task is not over.
func (u *unit) open() bool { return u.pending == 0 && !u.state.over() }

// blocked reports whether a parent is not done and the task is not over.
func (u *unit) blocked() bool { return u.pending > 0 && !u.state.over() }

// idle reports whether the task is open and not in a job.
func (u *unit) idle() bool { return u.open() && u.job == nil }

// assigned reports whether a worker has the task.
func (u *unit) assigned() bool { return u.job != nil && u.job.worker != 0 }

// An extra holds properties that few tasks have.
type extra struct {
	why      string        // reason why the last attempt did not finish
	cause    Cause         // cause of the end of the last attempt
	changed  []string      // inputs that any attempt changed
	longest  time.Duration // estimate, raised by a cut
	exceeded int           // the memory limit, in MiB, that it exceeded when it was killed; 0: it was not
	floor    int32         // highest attempt that a gap in the journal may have used
	losses   int32         // number of workers lost while running the task
	cancel   cancel
}

// A cancel describes the cancellation of a task, until the task is retried.
type cancel struct {
	why   string
	is    bool // it was cancelled
	begun bool // a worker had been given its current attempt
	later bool // it fails when the tasks before it in its job are done
}

// noExtra is the extra of tasks without one. It is read-only.
var noExtra extra

func (e *extra) empty() bool {
	return e.why == "" && e.cause == "" && len(e.changed) == 0 && e.longest == 0 && e.exceeded == 0 &&
		e.floor == 0 && e.losses == 0 && e.cancel == (cancel{})
}

// units is the table of all tasks, which it counts by state.
type units struct {
	plan     *plan
	tasks    []unit
	extras   map[int32]*extra
	count    [states]int
	failed   []int             // tasks in StateFailed, in the order of their failures
	reopened bool              // some tasks in failed have left the state since
	sizings  map[int32]*sizing // :: kind, see kindOf → what is known about its memory
	resized  bool              // the sizes of some kind may have changed since Misfits was called
}

// newUnits returns units whose tasks wait for their parents.
func newUnits(p *plan) *units {
	us := &units{plan: p, tasks: make([]unit, len(p.Tasks)), extras: map[int32]*extra{},
		sizings: map[int32]*sizing{}}
	for i := range us.tasks {
		us.tasks[i] = unit{attempt: 1, pending: int32(len(p.scope.nodes.Parents(i)))}
	}
	us.count[StateWaiting] = len(us.tasks)
	return us
}

// add appends a task without parents.
func (us *units) add() {
	i := int32(len(us.tasks))
	us.tasks = append(us.tasks, unit{attempt: us.extra(i).floor + 1})
	us.count[StateWaiting]++
}

func (us *units) at(i int32) *unit       { return &us.tasks[i] }
func (us *units) state(i int32) State    { return us.tasks[i].state }
func (us *units) has(i int32) bool       { return i >= 0 && int(i) < len(us.tasks) }
func (us *units) cancelled(i int32) bool { return us.extra(i).cancel.is }

// unfinished returns the number of tasks that are not over.
func (us *units) unfinished() int {
	return len(us.tasks) - us.count[StateDone] - us.count[StateFailed] - us.count[StateSkipped]
}

// move moves a task. No other function changes its state.
func (us *units) move(i int32, on event) {
	u := us.at(i)
	to := u.state.next(on)
	switch StateFailed {
	case u.state:
		us.reopened = true
	case to:
		us.sortOut(0, 0)
		us.failed = append(us.failed, int(i))
	}
	us.count[u.state]--
	us.count[to]++
	u.state = to
}

// sortOut removes tasks first to end-1, and reopened tasks, from the failures.
func (us *units) sortOut(first, end int32) {
	if !us.reopened && first == end {
		return
	}
	us.failed = slices.DeleteFunc(us.failed, func(i int) bool {
		return us.tasks[i].state != StateFailed || int32(i) >= first && int32(i) < end
	})
	us.reopened = false
}

// failures returns the tasks that failed permanently, in the order of their failures.
func (us *units) failures() []int {
	us.sortOut(0, 0)
	return us.failed
}

// extra returns the extra of a task, for reading.
func (us *units) extra(i int32) *extra {
	if e := us.extras[i]; e != nil {
		return e
	}
	return &noExtra
}

// grant returns the extra of a task, for writing.
func (us *units) grant(i int32) *extra {
	e := us.extras[i]
	if e == nil {
		e = &extra{}
		us.extras[i] = e
	}
	return e
}

// explain records why the last attempt at a task did not finish; "" removes the reason.
func (us *units) explain(i int32, why string) {
	if why != us.extra(i).why {
		us.grant(i).why = why
		us.tidy(i)
	}
}

// attribute records the cause of the end of a task; "" removes it.
func (us *units) attribute(i int32, cause Cause) {
	if cause != us.extra(i).cause {
		us.grant(i).cause = cause
		us.tidy(i)
	}
}

// tidy removes an empty extra.
func (us *units) tidy(i int32) {
	if us.extras[i].empty() {
		delete(us.extras, i)
	}
}
