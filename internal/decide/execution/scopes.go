package execution

import (
	"iter"
	"slices"
)

// A scope is the state of a subworkflow, or of the workflow, which is scope 0 and always running.
type scope struct {
	state   State
	begun   bool  // its members may run, or have run
	closing bool  // all members except the final tasks are over, and the final tasks may run
	pending int32 // parents that are not done
	open    int32 // members that are not over, final tasks aside
	last    int32 // final tasks that are not over
	failed  int32 // members
	tries   int32 // failed tries, since the beginning or since the run was resumed
	code    int   // exit status of the first member that failed
	why     string
	abort   *abortion // nil: it is not aborted
}

// An abortion names the unit that aborted a scope, and the resulting exit status of the scope.
type abortion struct {
	by     int32
	status int
	exit   int // the unit's own
}

// scopes is the tree of subworkflows. The scoping defines its shape: an inner scope follows the one around it.
type scopes struct {
	plan       *plan
	all        []scope
	unfinished int     // subworkflows that are not over
	broken     []int32 // subworkflows that failed, in order
	aborted    []int32 // scopes whose members are to be skipped when the record has been applied
}

// newScopes returns scopes whose subworkflows wait for their parents.
func newScopes(p *plan) *scopes {
	ss := &scopes{plan: p, all: make([]scope, len(p.scope.outer)), unfinished: len(p.scope.outer) - 1}
	for s := range ss.all {
		if s != 0 {
			ss.all[s].pending = int32(len(p.scope.nodes.Parents(p.scope.begin(int32(s)))))
		}
	}
	ss.all[0].state, ss.all[0].begun = StateRunning, true
	return ss
}

func (ss *scopes) at(s int32) *scope { return &ss.all[s] }

// within yields scope s and the scopes in it.
func (ss *scopes) within(s int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for k := s; int(k) < len(ss.all); k++ {
			if ss.plan.scope.isIn(k, s) && !yield(k) {
				return
			}
		}
	}
}

// move moves a subworkflow. No other function changes its state.
func (ss *scopes) move(s int32, on event) {
	sc := ss.at(s)
	to := sc.state.next(on)
	switch was := sc.state.over(); {
	case was && !to.over():
		ss.unfinished++
	case !was && to.over():
		ss.unfinished--
	}
	sc.state = to
}

// lessPending counts a parent as done, and reports whether it was the last one and the subworkflow has not begun.
func (sc *scope) lessPending() bool {
	sc.pending--
	return sc.pending == 0 && sc.state == StateWaiting
}

// join counts members that are not over.
func (sc *scope) join(members int32) { sc.open += members }

// memberOver counts a member that is over.
func (sc *scope) memberOver(final bool) {
	if final {
		sc.last--
	} else {
		sc.open--
	}
}

// memberFailed counts a member that failed.
func (sc *scope) memberFailed(status int) {
	if sc.failed++; sc.failed == 1 {
		sc.code = status
	}
}

// forgive uncounts a failed member that is retried.
func (sc *scope) forgive() {
	if sc.failed > 0 {
		sc.failed--
	}
}

// start records that the members of a subworkflow may run or are over.
func (sc *scope) start() { sc.begun = true }

// reset resets a subworkflow that begins again after this many failed tries.
func (sc *scope) reset(tries int32) { sc.begun, sc.tries, sc.why = false, tries, "" }

// setMembers sets the numbers of members that are not over.
func (sc *scope) setMembers(open, last int32) { sc.open, sc.last = open, last }

// forget removes the failures of members and the abortion.
func (sc *scope) forget() { sc.failed, sc.code, sc.closing, sc.abort = 0, 0, false, nil }

// doneAround reports whether scope k, which is in s, or a scope between the two is done in spite of failures in it.
func (ss *scopes) doneAround(k, s int32) bool {
	for ; k != s; k = ss.plan.scope.outer[k] {
		if ss.at(k).state == StateDone {
			return true
		}
	}
	return false
}

// fail records that a subworkflow failed permanently.
func (ss *scopes) fail(s int32, why string) {
	ss.at(s).why = why
	ss.broken = append(ss.broken, s-1)
	ss.move(s, onFail)
}

// mend removes reopened subworkflows from the failed ones.
func (ss *scopes) mend(reopened []int32) {
	ss.broken = slices.DeleteFunc(ss.broken, func(k int32) bool { return slices.Contains(reopened, k+1) })
}

// unclose makes the final tasks of a scope wait for the other members again. It reports whether they were allowed to
// run.
func (sc *scope) unclose() bool {
	was := sc.closing
	sc.closing = false
	return was
}

// leave schedules all members of a scope to be skipped because of an abortion, once the record has been applied.
func (ss *scopes) leave(s int32, by *abortion) {
	ss.at(s).abort = by
	ss.aborted = append(ss.aborted, s)
}

// nextAborted removes and returns the first aborted scope.
func (ss *scopes) nextAborted() int32 {
	s := ss.aborted[0]
	ss.aborted = ss.aborted[1:]
	return s
}
