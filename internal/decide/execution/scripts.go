package execution

import (
	"container/heap"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A unit is how far a task with scripts, or a subworkflow, is.
type unit struct {
	stage   stage
	exit    int    // exit status of its process
	pre     int    // of its PRE script
	why     string // it failed
	seq     int64  // the job that its process was in
	asked   bool   // its script is to be started
	started bool   // its script was handed out
	later   bool   // its script is deferred
}

// A Call is a script that is to be started now.
type Call struct {
	Unit int32 // a task's index, or that of a subworkflow behind those of all tasks
	Post bool
	Try  int32 // how often the unit failed before

	Round int32 // how often the unit was given up; the end of a script of another round does not count

	Retries     int   // how often it may be tried again in all
	Return      int   // of Post: the exit status of the process; -N if it died of signal N, -1 if it has none
	PreReturn   int   // of Post: that of the PRE script; -1 if there is none
	Attempt     int32 // of Post of a task: the one that is over
	Job         int64 // of Post: in which the process was
	Status      int   // of the workflow: 0, 2 if something in it failed for good, 3 if it is aborted
	FailedCount int   // how much
}

// scripts are those that are to be started: by urgency, and those that were deferred by time.
type scripts struct {
	plan     *plan
	ready    agenda
	deferred []deferral
	running  int
	posts    int             // tasks whose process is over, and that wait for their POST scripts
	rounds   map[int32]int32 // :: unit → how often it was given up
	unwanted []int32         // units whose scripts run all the same
}

// A deferral is a script that is run again.
type deferral struct {
	unit int32
	at   Msec
}

// add lets the script of a unit be started as soon as there is room.
func (s *scripts) add(number int32, u *unit) {
	if u.asked {
		return
	}
	u.asked = true
	urgent := urgency{priority: s.plan.scope.rules(number).Priority, place: number}
	if s.plan.scope.isTask(number) {
		urgent.rank = s.plan.rank[number]
	}
	heap.Push(&s.ready, agendum{unit: number, urgency: urgent})
}

// drop takes note that no script of a unit is to be awaited any more.
func (s *scripts) drop(u *unit) {
	if u.started {
		s.running--
	}
	u.asked, u.started, u.later = false, false, false
}

// giveUp forgets the script of a unit, which is to be killed if it runs.
func (s *scripts) giveUp(number int32, u *unit) {
	if u.started {
		s.unwanted = append(s.unwanted, number)
	}
	s.rounds[number]++
	s.drop(u)
}

// UnwantedScripts returns the units whose scripts are to be killed, and forgets them.
func UnwantedScripts(x *Execution) []int32 {
	units := x.control.scripts.unwanted
	x.control.scripts.unwanted = nil
	return units
}

// busy reports whether a script runs or is to.
func (s *scripts) busy() bool { return s.running > 0 || len(s.ready) > 0 || len(s.deferred) > 0 }

// Scripts returns the scripts that are to be started now, at most so many. Their ends are told as records. After a
// restart they are to be started again, unless their ends are recorded.
func Scripts(x *Execution, now time.Time, most int) (calls []Call) {
	c := x.control
	undefer(c, ToMsec(now))
	for len(c.scripts.ready) > 0 && len(calls) < most {
		number := heap.Pop(&c.scripts.ready).(agendum).unit
		u := c.unit(number)
		if !u.asked || u.started || u.later || u.stage != stagePre && u.stage != stagePost {
			continue
		}
		u.started = true
		c.scripts.running++
		calls = append(calls, callOf(c, number, u))
	}
	return calls
}

// scripted goes on after the end of a script. Only that of the unit's present stage and try counts.
func (c *control) scripted(r *ScriptEnd, at Msec) {
	if r.Unit < 0 || int(r.Unit) >= len(c.plan.Tasks)+len(c.plan.Subs) {
		return
	}
	c.reach(r.Unit)
	u, want := c.unit(r.Unit), stagePre
	if r.Post {
		want = stagePost
	}
	if u == nil || u.stage != want || triesOf(c, r.Unit) != r.Try || c.scripts.rounds[r.Unit] != r.Round {
		return
	}
	if c.plan.scope.isTask(r.Unit) && (!c.idle(r.Unit) || c.held(r.Unit)) {
		return
	}
	c.scripts.drop(u)
	rules := c.plan.scope.rules(r.Unit)
	script := rules.Pre
	if r.Post {
		script = rules.Post
	}
	if script.DeferStatus != 0 && r.Exit == script.DeferStatus {
		u.asked, u.later = true, true
		c.scripts.deferred = append(c.scripts.deferred, deferral{r.Unit, at.add(script.DeferAfter)})
		return
	}
	v := verdict{at: at, unit: r.Unit, status: r.Exit, done: r.Exit == 0, why: r.Reason}
	switch {
	case r.Post:
		if c.plan.scope.isTask(r.Unit) {
			c.scripts.posts--
		}
		c.conclude(v)
	case rules.PreSkip != 0 && r.Exit == rules.PreSkip:
		passOver(c, r.Unit)
	case r.Exit != 0:
		v.unbegun = true
		c.conclude(v)
	default:
		u.pre = 0
		proceed(c, r.Unit, at)
	}
}

// proceed goes on behind a PRE script: with the process of a task, or the members of a subworkflow.
func proceed(c *control, number int32, at Msec) {
	if c.plan.scope.isTask(number) {
		c.units[number].stage = stageBody
		c.frontier.again(number, at, 0)
		return
	}
	c.queue(number - int32(len(c.plan.Tasks)) + 1)
}

// signalNames are those of Linux, from 1.
const signalNames = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP " +
	"TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"

// status is the exit status of an attempt as DAGMan tells it: of one that a signal ended, that with a minus sign; -1 if
// there is none but the attempt failed.
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

// undefer asks for the scripts again whose time has come.
func undefer(c *control, now Msec) {
	c.scripts.deferred = slices.DeleteFunc(c.scripts.deferred, func(d deferral) bool {
		if d.at > now {
			return false
		}
		if u := c.unit(d.unit); u.later {
			u.asked, u.later = false, false
			c.scripts.add(d.unit, u)
		}
		return true
	})
}

// callOf says what a script of a unit is told, in DAGMan's terms: how often the unit was tried, what its job and
// its PRE script returned, and how the whole goes (0 well, 2 with failures, 3 aborted).
func callOf(c *control, number int32, u *unit) Call {
	call := Call{Unit: number, Post: u.stage == stagePost,
		Try: triesOf(c, number), Round: c.scripts.rounds[number], Retries: c.plan.scope.retries(number),
		Return: u.exit, PreReturn: u.pre, Job: u.seq, FailedCount: len(c.attempts.tally.failed) + len(c.broken)}
	if int(number) < len(c.plan.Tasks) {
		call.Attempt = c.attempts.tasks[number].attempt
	}
	if c.plan.scope.rules(number).Pre == nil {
		call.PreReturn = -1
	}
	switch {
	case c.scopes[0].abort != nil:
		call.Status = 3
	case call.FailedCount > 0:
		call.Status = 2
	}
	return call
}

// triesOf returns how often a unit failed, retries how often it may be tried again.
func triesOf(c *control, number int32) int32 {
	if c.plan.scope.isTask(number) {
		return c.attempts.tasks[number].failures
	}
	return c.scopes[int(number)-len(c.plan.Tasks)+1].tries
}
