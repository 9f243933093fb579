package execution

import (
	"slices"

	"github.com/corral-pilot/corral"
)

// While a run is in progress, users may request that a failed task be retried, or that a task that is not over be
// cancelled. Both requests are Records like all others, so that a replay gives the same state.
//
// A cancelled task fails immediately, even if it still waits. If it is in a worker's job and waits for other tasks of
// that job, it is only marked: it fails when they are done, so that they can run. In an open execution, a worker's task
// continues until the worker reports its end, which may take a while: until then, tasks that wait for it do not begin,
// and it is not retried.
//
// A task in a subworkflow that is over is retried with all other units in it that are not done, as in a retry of the
// subworkflow.

// A Cancellation lists tasks that are to end, and who requested it.
type Cancellation struct {
	Tasks []int32 `json:"i"`
	Why   string  `json:"why"`
	Await bool    `json:"await,omitempty"` // wait until workers report the ends; false in older journals
}

// Retriable returns the tasks that a retry would change: those that failed permanently or are marked to fail. Other
// tasks that are ready, running or waiting are accepted, since they run anyway; a task that is done, or was skipped
// below another, is a Conflict error.
func Retriable(x *Execution, tasks []int) (failed []int32, err error) {
	if x.plan.Open {
		return retriableAdded(x, tasks)
	}
	for _, i := range tasks {
		switch x.units.state(int32(i)) {
		case StateFailed:
			if why := x.unretriable(int32(i)); why != "" {
				return nil, refused(x, i, why)
			}
			failed = append(failed, int32(i))
		case StateWaiting, StateBehind:
			if x.units.extra(int32(i)).cancel.later {
				failed = append(failed, int32(i))
			}
		case StateDone:
			return nil, refused(x, i, "is done; only tasks that failed are tried again")
		case StateSkipped:
			return nil, refused(x, i, "never began, because a task before it failed; retry that one")
		}
	}
	return unique(failed), nil
}

// Cancellable returns the tasks that a cancellation would change: those that are not over and were not cancelled, and
// those of an open run that wait in vain, which are then reported as withdrawn. A task that is done is a Conflict
// error, except in an open run: a user who cancels thousands of short tasks cannot know which of them have just ended.
func Cancellable(x *Execution, tasks []int) (open []int32, err error) {
	for _, i := range tasks {
		switch state := x.units.state(int32(i)); {
		case state == StateDone && !x.plan.Open:
			return nil, refused(x, i, "is done")
		case !state.over() && !x.units.cancelled(int32(i)),
			state == StateSkipped && x.units.extra(int32(i)).cause == Never:
			open = append(open, int32(i))
		}
	}
	return unique(open), nil
}

func refused(x *Execution, i int, why string) error {
	return corral.ErrorAt(corral.Conflict, "tasks", "task %s %s", x.plan.Tasks[i].ID, why)
}

func unique(tasks []int32) []int32 {
	slices.Sort(tasks)
	return slices.Compact(tasks)
}

// cancel ends tasks, or marks them to fail.
func (x *Execution) cancel(r *Cancellation) {
	for _, i := range r.Tasks {
		if !x.units.has(i) {
			continue
		}
		u := x.units.at(i)
		if u.state == StateSkipped && x.units.extra(i).cause == Never {
			x.units.attribute(i, Withdrawn)
			x.units.explain(i, r.Why)
		}
		if u.state.over() {
			continue
		}
		later := u.assigned() && u.blocked()
		x.units.cancel(i, r.Why, later)
		switch {
		case later:
			x.units.explain(i, r.Why)
		case u.assigned() && r.Await && x.plan.Open:
			x.units.explain(i, r.Why)
			x.units.attribute(i, Withdrawn)
			x.kills = append(x.kills, u.job.seq)
		default:
			x.abandon(i)
		}
	}
}

// cancel records that a task was cancelled; later means that it fails when the tasks before it in its job are done.
func (us *units) cancel(i int32, why string, later bool) {
	e := us.grant(i)
	e.cancel = cancel{why: why, is: true, later: later || e.cancel.later}
}

// unmark removes the mark of a task that is marked to fail.
func (x *Execution) unmark(i int32) {
	if x.units.extra(i).cancel.later {
		x.units.grant(i).cancel = cancel{}
		x.units.explain(i, "")
	}
}

// collect ends the marked tasks that no longer wait.
func (x *Execution) collect() {
	ripe := x.ripe
	x.ripe = nil
	for _, i := range ripe {
		if x.units.extra(i).cancel.later && x.units.at(i).open() {
			x.units.grant(i).cancel.later = false
			x.abandon(i)
		}
	}
}

// abandon ends a cancelled task: it fails, and its job is to be killed. Tasks after it in an ordered job also leave the
// job. One of them may begin before the kill arrives, so their attempt numbers are used up.
func (x *Execution) abandon(i int32) {
	u := x.units.at(i)
	begun := u.assigned() || u.state == StateJudging
	var behind []int32
	if u.job != nil {
		x.kills = append(x.kills, u.job.seq)
	}
	if u.assigned() {
		behind = x.jobs.remaining(u.job)
	}
	x.over = x.jobs.leave(i, x.over)
	x.withdraw(i, begun)
	for _, k := range behind {
		if x.units.state(k) == StateSkipped {
			x.nextAttempt(k)
		}
	}
}

// withdraw makes a cancelled task without a job fail; begun means that a worker was given its current attempt.
func (x *Execution) withdraw(i int32, begun bool) {
	x.units.setBegun(i, begun)
	x.units.explain(i, x.units.extra(i).cancel.why)
	x.frontier.endBackoff(i)
	cause := Cause("")
	if x.plan.Open {
		cause = Withdrawn
	}
	x.units.attribute(i, cause)
	x.scripts.giveUp(i)
	x.fail(verdict{unit: i, status: -1})
}

// setBegun records whether a worker was given the current attempt at a task that was cancelled.
func (us *units) setBegun(i int32, begun bool) { us.grant(i).cancel.begun = begun }

// beganAfterAll records that a worker is given an attempt at a task that has been cancelled, or at a task after it in
// its job: the number of the attempt is used up.
func (x *Execution) beganAfterAll(p Part) {
	switch {
	case !x.units.current(p):
	case x.units.cancelled(p.Task):
		x.units.setBegun(p.Task, true)
	case x.units.state(p.Task) == StateSkipped:
		x.nextAttempt(p.Task)
	}
}
