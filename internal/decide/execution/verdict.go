package execution

import (
	"slices"
	"time"
)

// A verdict describes how a try of a unit ended.
type verdict struct {
	at      Msec
	unit    int32
	status  int
	done    bool
	unbegun bool // its PRE script failed
	forever bool // it must not be retried
	why     string
}

// processOver handles a task whose process ended by itself.
func (x *Execution) processOver(o *Outcome, at Msec) {
	v := verdict{at: at, unit: o.Task, status: o.status(), done: o.Status == Done, why: o.Reason}
	if x.plan.scope.rules(o.Task).Post == nil || x.scripts.of[o.Task] == nil {
		x.conclude(v)
		return
	}
	if !v.done {
		x.units.explain(o.Task, v.why)
	}
	x.units.move(o.Task, onJudge)
	x.scripts.judge(o.Task, v.status, o.Seq)
}

// conclude ends a try of a unit, and begins the next one or ends the unit.
func (x *Execution) conclude(v verdict) {
	rules, s := x.plan.scope.rules(v.unit), x.plan.scope.scopeOf(v.unit)
	if a := rules.Abort; a != nil && a.Exit == v.status && x.scopes.at(s).abort == nil {
		by := &abortion{by: v.unit, status: v.status, exit: v.status}
		if a.Return != nil {
			by.status = *a.Return
		}
		x.scopes.leave(s, by)
		v.forever = true
	}
	v.forever = v.forever || slices.Contains(rules.UnlessExit, v.status)
	if x.plan.scope.isTask(v.unit) {
		x.concludeTask(v)
	} else {
		x.concludeScope(v, x.plan.scope.scopeOfUnit(v.unit))
	}
}

// concludeTask ends an attempt at a task, including its scripts: the task is done, is retried after a wait, or has
// failed permanently. A retry begins with the PRE script.
func (x *Execution) concludeTask(v verdict) {
	i := v.unit
	if v.done {
		x.units.explain(i, "")
		x.units.move(i, onDone)
		x.unblock(int(i))
		x.memberOver(i)
		return
	}
	again, wait := x.failAttempt(v)
	if !again {
		x.fail(v)
		return
	}
	x.scripts.reset(i)
	if x.scripts.preparing(i) {
		x.units.move(i, onPrepare)
	} else {
		x.units.move(i, onRetry)
	}
	x.requeue(i, v.at, wait)
}

// requeue makes a task loose after a wait. A task that waits for others again is held.
func (x *Execution) requeue(i int32, at Msec, wait time.Duration) {
	if x.units.state(i) != StateWaiting && x.held(i) {
		x.hold(i)
	}
	x.frontier.again(i, at, wait)
}

// fail ends a unit that failed permanently. If it is a subworkflow that never began, its members are also skipped.
func (x *Execution) fail(v verdict) {
	x.scopes.at(x.plan.scope.scopeOf(v.unit)).memberFailed(v.status)
	switch s := x.plan.scope.scopeOfUnit(v.unit); {
	case x.plan.scope.isTask(v.unit):
		if state := x.units.state(v.unit); state == StateWaiting || state == StateBehind {
			x.frontier.drop(v.unit)
		}
		x.units.move(v.unit, onFail)
		x.skipBelow(int(v.unit))
	case x.scopes.at(s).begun:
		x.skipBelow(x.plan.scope.end(s))
	default:
		x.skipBelow(x.plan.scope.begin(s), x.plan.scope.end(s))
	}
	x.memberOver(v.unit)
}

// A Verdict is the outcome of an execution for the workflow. Its lists are in the order of the failures.
type Verdict struct {
	Status int    // the workflow's exit status; 0: it succeeded
	Abort  string // why it was aborted, in a sentence; empty: not aborted
	Tasks  []int  // tasks that failed permanently and made the workflow fail
	Subs   []SubFailure
}

// A SubFailure is a subworkflow that failed because of its own script.
type SubFailure struct {
	Name, Why string
}

// VerdictOf returns the verdict on an execution that is done.
func VerdictOf(x *Execution) Verdict {
	v := Verdict{Status: x.statusOf(0)}
	final, _ := x.finalsOf(0)
	for _, i := range x.Failed() {
		if !x.scopes.doneAround(x.plan.scope.around(int32(i)), 0) && !(v.Status == 0 && final) {
			v.Tasks = append(v.Tasks, i)
		}
	}
	for _, k := range x.scopes.broken {
		s := k + 1
		if !x.scopes.doneAround(x.plan.scope.outer[s], 0) && x.scopes.at(s).failed == 0 {
			v.Subs = append(v.Subs, SubFailure{x.plan.Subs[k].Name, x.scopes.at(s).why})
		}
	}
	if x.scopes.at(0).abort != nil && !final {
		v.Abort = x.whyAborted(0)
	}
	return v
}

// Kills returns the numbers of jobs that must be killed, because tasks in them were cancelled or their scope was
// aborted, and clears the list. Some of them may be over, or may never have been assigned.
func Kills(x *Execution) []int64 {
	kills := x.kills
	x.kills = nil
	return kills
}
