package execution

import (
	"container/heap"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Call is a script to start now.
type Call struct {
	Unit int32 // index of a task, or of a subworkflow, counted after all tasks
	Post bool
	Try  int32 // number of failed tries of the unit

	Round int32 // number of times the unit was given up; the ends of scripts of other rounds are ignored

	Retries     int   // maximum number of retries
	Return      int   // of Post: exit status of the process; -N if signal N killed it, -1 if it has none
	PreReturn   int   // of Post: exit status of the PRE script; -1 if there is none
	Attempt     int32 // of a task's Post: the attempt that is over
	Job         int64 // of Post: job that contained the process
	Status      int   // of the workflow: 0; 2 if a unit failed permanently; 3 if it was aborted
	FailedCount int   // number of tasks and subworkflows that failed permanently
}

// A script is the state of the scripts of a unit that has any.
type script struct {
	exit     int   // exit status of the unit's process
	seq      int64 // job that contained the process
	round    int32 // number of times the unit was given up
	prepared bool  // of a task: its PRE script succeeded in this try
	wanted   bool  // a script must be started
	started  bool  // it was returned by Scripts
	deferred bool  // it must be started later
}

// scripts lists the scripts to start: sorted by urgency, or, if they were deferred, by time.
type scripts struct {
	plan     *plan
	of       map[int32]*script // :: unit → its scripts
	ready    agenda
	deferred []deferral
	running  int
	unwanted []int32 // units with running scripts that must be killed
}

// A deferral is a script that will be run again.
type deferral struct {
	unit int32
	at   Msec
}

func newScripts(p *plan) *scripts {
	ss := &scripts{plan: p, of: map[int32]*script{}}
	for unit := range int32(len(p.Tasks) + len(p.Subs)) {
		done := p.scope.isTask(unit) && p.Tasks[unit].Done
		if r := p.scope.rules(unit); !done && (r.Pre != nil || r.Post != nil) {
			ss.of[unit] = &script{}
		}
	}
	return ss
}

// preparing reports whether a task has a PRE script that has not succeeded in this try.
func (ss *scripts) preparing(task int32) bool {
	sc := ss.of[task]
	return sc != nil && !sc.prepared && ss.plan.scope.rules(task).Pre != nil
}

// reset resets the scripts of a unit, if it has any, because the unit is retried.
func (ss *scripts) reset(unit int32) {
	if sc := ss.of[unit]; sc != nil {
		*sc = script{round: sc.round}
	}
}

// request requests the start of a unit's script as soon as there is room.
func (ss *scripts) request(unit int32) {
	sc := ss.of[unit]
	if sc.wanted {
		return
	}
	sc.wanted = true
	urgent := urgency{priority: ss.plan.scope.rules(unit).Priority, place: unit}
	if ss.plan.scope.isTask(unit) {
		urgent.rank = ss.plan.rank[unit]
	}
	heap.Push(&ss.ready, agendum{unit: unit, urgency: urgent})
}

// judge requests the POST script of a unit whose process, in the job seq, ended with an exit status.
func (ss *scripts) judge(unit int32, exit int, seq int64) {
	sc := ss.of[unit]
	sc.exit, sc.seq = exit, seq
	ss.request(unit)
}

// end counts the script of a unit as over.
func (ss *scripts) end(sc *script) {
	if sc.started {
		ss.running--
	}
	sc.wanted, sc.started, sc.deferred = false, false, false
}

// later defers the script of a unit.
func (ss *scripts) later(unit int32, at Msec) {
	sc := ss.of[unit]
	sc.wanted, sc.deferred = true, true
	ss.deferred = append(ss.deferred, deferral{unit, at})
}

// giveUp gives up the script of a unit, which must be killed if it runs.
func (ss *scripts) giveUp(unit int32) {
	sc := ss.of[unit]
	if sc == nil {
		return
	}
	if sc.started {
		ss.unwanted = append(ss.unwanted, unit)
	}
	sc.round++
	ss.end(sc)
}

// UnwantedScripts returns the units whose scripts must be killed, and clears the list.
func UnwantedScripts(x *Execution) []int32 {
	units := x.scripts.unwanted
	x.scripts.unwanted = nil
	return units
}

// busy reports whether a script runs or is due to run.
func (ss *scripts) busy() bool { return ss.running > 0 || len(ss.ready) > 0 || len(ss.deferred) > 0 }

// Scripts returns the scripts to start now, at most the given number. Their ends are records. After a restart, scripts
// must be started again unless their ends have been recorded.
func Scripts(x *Execution, now time.Time, most int) (calls []Call) {
	x.scripts.resume(ToMsec(now))
	for len(x.scripts.ready) > 0 && len(calls) < most {
		unit := heap.Pop(&x.scripts.ready).(agendum).unit
		sc, state := x.scripts.of[unit], x.state(unit)
		if !sc.wanted || sc.started || sc.deferred || state != StatePreparing && state != StateJudging {
			continue
		}
		sc.started = true
		x.scripts.running++
		calls = append(calls, x.call(unit, sc))
	}
	return calls
}

// resume requests the deferred scripts that are due.
func (ss *scripts) resume(now Msec) {
	ss.deferred = slices.DeleteFunc(ss.deferred, func(d deferral) bool {
		if d.at > now {
			return false
		}
		if sc := ss.of[d.unit]; sc.deferred {
			sc.wanted, sc.deferred = false, false
			ss.request(d.unit)
		}
		return true
	})
}

// scriptOver handles the end of a script. It ignores scripts that do not belong to the unit's current state and try.
func (x *Execution) scriptOver(r *ScriptEnd, at Msec) {
	if r.Unit < 0 || int(r.Unit) >= len(x.plan.Tasks)+len(x.plan.Subs) {
		return
	}
	x.beginAround(r.Unit)
	rules := x.plan.scope.rules(r.Unit)
	want, rule := StatePreparing, rules.Pre
	if r.Post {
		want, rule = StateJudging, rules.Post
	}
	sc := x.scripts.of[r.Unit]
	if sc == nil || x.state(r.Unit) != want || x.tries(r.Unit) != r.Try || sc.round != r.Round {
		return
	}
	if x.plan.scope.isTask(r.Unit) && x.held(r.Unit) {
		return
	}
	x.scripts.end(sc)
	if rule.DeferStatus != 0 && r.Exit == rule.DeferStatus {
		x.scripts.later(r.Unit, at.add(rule.DeferAfter))
		return
	}
	v := verdict{at: at, unit: r.Unit, status: r.Exit, done: r.Exit == 0, why: r.Reason}
	switch {
	case r.Post:
		x.conclude(v)
	case rules.PreSkip != 0 && r.Exit == rules.PreSkip:
		x.passOver(r.Unit)
	case r.Exit != 0:
		v.unbegun = true
		x.conclude(v)
	case x.plan.scope.isTask(r.Unit):
		sc.prepared = true
		x.units.move(r.Unit, onFree)
		x.frontier.again(r.Unit, at, 0)
	default:
		x.queue(x.plan.scope.scopeOfUnit(r.Unit))
	}
}

// state returns the state of a task or a subworkflow.
func (x *Execution) state(unit int32) State {
	if x.plan.scope.isTask(unit) {
		return x.units.state(unit)
	}
	return x.scopes.at(x.plan.scope.scopeOfUnit(unit)).state
}

// tries returns how often a unit failed.
func (x *Execution) tries(unit int32) int32 {
	if x.plan.scope.isTask(unit) {
		return x.units.at(unit).failures
	}
	return x.scopes.at(x.plan.scope.scopeOfUnit(unit)).tries
}

// call returns the Call of a unit's script, in DAGMan's terms: the number of tries of the unit, the exit statuses of
// its job and its PRE script, and the status of the workflow (0 without failures, 2 with failures, 3 aborted).
func (x *Execution) call(unit int32, sc *script) Call {
	call := Call{
		Unit: unit, Post: x.state(unit) == StateJudging, Try: x.tries(unit), Round: sc.round,
		Retries: x.plan.scope.retries(unit), Return: sc.exit, Job: sc.seq,
		FailedCount: len(x.Failed()) + len(x.scopes.broken),
	}
	if x.plan.scope.isTask(unit) {
		call.Attempt = x.units.at(unit).attempt
	}
	if x.plan.scope.rules(unit).Pre == nil {
		call.PreReturn = -1
	}
	switch {
	case x.scopes.at(0).abort != nil:
		call.Status = 3
	case call.FailedCount > 0:
		call.Status = 2
	}
	return call
}

// signalNames lists the names of Linux's signals, from 1.
const signalNames = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP " +
	"TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"

// status returns the exit status of an attempt in DAGMan's terms: the negated number of the signal that ended it, or -1
// if it failed without an exit status.
func (o *Outcome) status() int {
	if o.Signal == "" {
		if o.Exit == 0 && o.Status != Done {
			return -1
		}
		return o.Exit
	}
	if k := slices.Index(strings.Fields(signalNames), strings.TrimPrefix(o.Signal, "SIG")); k >= 0 {
		return -k - 1
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(o.Signal, "signal ")); err == nil {
		return -n
	}
	return -1
}
