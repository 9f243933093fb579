package execution

import "fmt"

// The life of a subworkflow: when its parents are done, its PRE script runs. Then it waits until the limit of its
// category allows it. Then its members run, then its final tasks, then its POST script. A subworkflow that fails begins
// again as long as it has retries.
//
// All of this follows from records, with two exceptions, which may be repeated after a restart: the start of a script,
// and the admission of a subworkflow by its category's limit, which the first record about a unit in it implies.

// count counts the members of a scope that are not over.
func (x *Execution) count(s int32) {
	if x.plan.scope.inside == nil {
		x.scopes.at(s).setMembers(int32(x.units.unfinished()), 0)
		return
	}
	var open, last int32
	for i := range x.plan.scope.members(s) {
		switch {
		case x.units.state(i).over():
		case x.plan.scope.rules(i).Final:
			last++
		default:
			open++
		}
	}
	for k := s + 1; int(k) < len(x.scopes.all); k++ {
		if x.plan.scope.outer[k] == s && !x.scopes.at(k).state.over() {
			open++
		}
	}
	x.scopes.at(s).setMembers(open, last)
}

// memberOver counts a unit as over in its scope.
func (x *Execution) memberOver(unit int32) {
	s := x.plan.scope.scopeOf(unit)
	x.scopes.at(s).memberOver(x.plan.scope.rules(unit).Final)
	if x.plan.Open {
		x.additions.ended(unit, x.now)
	}
	x.check(s)
}

// check lets the final tasks of a scope run when its other members are over, and ends the scope when the final tasks
// are also over.
func (x *Execution) check(s int32) {
	sc := x.scopes.at(s)
	if sc.state == StateReady && sc.open+sc.last == 0 {
		x.begin(s) // all members were cancelled
		return
	}
	if sc.state != StateRunning || sc.open > 0 {
		return
	}
	if sc.last > 0 && !sc.closing {
		sc.closing = true
		for i := range x.plan.scope.finals(s) {
			x.unhold(i)
		}
	}
	if sc.last == 0 && s != 0 {
		x.membersOver(s)
	}
}

// holdFinals makes the final tasks of a scope wait, unless a worker has them.
func (x *Execution) holdFinals(s int32) {
	for i := range x.plan.scope.finals(s) {
		if state := x.units.state(i); state == StateReady || state == StatePreparing {
			x.hold(i)
		}
	}
}

// prepare begins a subworkflow whose parents are done.
func (x *Execution) prepare(s int32) {
	if sc := x.scopes.at(s); sc.state != StateWaiting || sc.pending > 0 {
		return
	}
	unit := x.plan.scope.unitOf(s)
	if x.plan.scope.rules(unit).Pre == nil {
		x.queue(s)
		return
	}
	x.scopes.move(s, onPrepare)
	x.scripts.request(unit)
}

// prepareAll begins the subworkflows in a scope whose parents are done.
func (x *Execution) prepareAll(s int32) {
	for k := range x.scopes.within(s) {
		if k != 0 {
			x.prepare(k)
		}
	}
}

// queue makes a subworkflow wait for its category, if the category has a limit and any member is to run. Otherwise the
// subworkflow begins.
func (x *Execution) queue(s int32) {
	x.scopes.move(s, onFree)
	unit, sc := x.plan.scope.unitOf(s), x.scopes.at(s)
	rules := x.plan.scope.rules(unit)
	if rules.Category != 0 && sc.open+sc.last > 0 {
		urgent := urgency{rules.Priority, x.plan.rankOf(s), unit}
		x.order.add(rules.Category, agendum{unit: unit, urgency: urgent})
		return
	}
	x.begin(s)
}

// begin lets the members of a subworkflow run.
func (x *Execution) begin(s int32) {
	x.scopes.move(s, onStart)
	x.scopes.at(s).start()
	x.jobs.use(x.plan.scope.rules(x.plan.scope.unitOf(s)).Category, 1)
	x.unblock(x.plan.scope.begin(s))
	x.check(s)
}

// beginAround begins the subworkflows around a unit that only wait for their category: a record about one of their
// members implies that they were admitted.
func (x *Execution) beginAround(unit int32) {
	if s := x.plan.scope.scopeOf(unit); s != 0 {
		x.beginAround(x.plan.scope.unitOf(s))
		if x.scopes.at(s).state == StateReady {
			x.begin(s)
		}
	}
}

// membersOver requests the POST script of a subworkflow whose members are over, or concludes it.
func (x *Execution) membersOver(s int32) {
	unit := x.plan.scope.unitOf(s)
	rules := x.plan.scope.rules(unit)
	x.jobs.use(rules.Category, -1)
	status := x.statusOf(s)
	why := ""
	if status != 0 {
		why = fmt.Sprintf("exit status %d", status)
	}
	if rules.Post != nil {
		x.scopes.move(s, onJudge)
		x.scripts.judge(unit, status, 0)
		return
	}
	x.conclude(verdict{unit: unit, status: status, done: status == 0, why: why})
}

// concludeScope ends a try of subworkflow s: it is done, begins again as a whole, or has failed permanently.
func (x *Execution) concludeScope(v verdict, s int32) {
	switch sc := x.scopes.at(s); {
	case v.done:
		x.scopes.move(s, onDone)
		x.unblock(x.plan.scope.end(s))
		x.memberOver(v.unit)
	case !v.forever && int(sc.tries) < x.plan.Subs[s-1].Retries:
		x.tally.retry(false)
		x.reopen(s, sc.tries+1)
	default:
		x.scopes.fail(s, v.why)
		x.fail(v)
	}
}

// skipScope skips a subworkflow whose tasks have already been skipped.
func (x *Execution) skipScope(s int32) {
	unit, sc := x.plan.scope.unitOf(s), x.scopes.at(s)
	if sc.state == StateRunning {
		x.jobs.use(x.plan.scope.rules(unit).Category, -1)
	}
	x.scripts.giveUp(unit)
	if !sc.state.over() {
		x.scopes.move(s, onSkip)
	}
}

// passOver ends a unit as done, because its PRE script declared it done.
func (x *Execution) passOver(unit int32) {
	if x.plan.scope.isTask(unit) {
		x.units.unbegin(unit)
		x.concludeTask(verdict{unit: unit, done: true})
		return
	}
	s := x.plan.scope.scopeOfUnit(unit)
	first, end := x.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		x.skip(i, nil)
	}
	for k := range x.scopes.within(s) {
		if k != s {
			x.skipScope(k)
		}
	}
	x.scopes.at(s).start()
	x.countDone(x.plan.scope.begin(s))
	x.concludeScope(verdict{unit: unit, done: true}, s)
}

// statusOf returns the exit status of a scope whose members are over, by DAGMan's rules: that of its final task or of
// the abortion, or 1 if a member failed.
func (x *Execution) statusOf(s int32) int {
	sc := x.scopes.at(s)
	final, failed := x.finalsOf(s)
	switch {
	case final && failed:
		return 1
	case final:
		return 0
	case sc.abort != nil:
		return sc.abort.status
	case sc.failed > 0 && s != 0 && x.plan.Subs[s-1].Job && sc.code != 0:
		return sc.code
	case sc.failed > 0:
		return 1
	}
	return 0
}

// finalsOf reports whether a scope has final tasks, and whether one of them failed.
func (x *Execution) finalsOf(s int32) (any, failed bool) {
	for i := range x.plan.scope.finals(s) {
		any, failed = true, failed || x.units.state(i) != StateDone
	}
	return any, failed
}

// leaveAborted skips all members of the aborted scopes except their final tasks. The jobs that end as a result are to
// be killed.
func (x *Execution) leaveAborted() {
	for len(x.scopes.aborted) > 0 {
		s := x.scopes.nextAborted()
		if sc := x.scopes.at(s); sc.abort == nil || sc.state != StateRunning {
			continue // it ended by itself
		}
		over := x.leaveTasks(s)
		for k := range x.scopes.within(s) {
			if k != s {
				x.skipScope(k)
			}
		}
		x.kills, x.over = append(x.kills, over...), append(x.over, over...)
		x.count(s)
		x.check(s)
	}
}

// leaveTasks skips the tasks in an aborted scope, and returns the jobs that are over as a result.
func (x *Execution) leaveTasks(s int32) (over []int64) {
	first, end := x.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		if x.plan.scope.rules(i).Final && x.plan.scope.around(i) == s {
			continue
		}
		if u := x.units.at(i); u.assigned() && u.open() {
			x.units.explain(i, "killed: "+x.whyAborted(s))
		}
		over = x.skip(i, over)
	}
	return over
}

// skip skips a task in any state unless it is over.
func (x *Execution) skip(i int32, over []int64) []int64 {
	u := x.units.at(i)
	if u.assigned() {
		x.nextAttempt(i)
	}
	over = x.jobs.leave(i, over)
	x.scripts.giveUp(i)
	if u.state.over() {
		return over
	}
	if u.state == StateWaiting || u.state == StateBehind {
		x.frontier.drop(i)
	}
	x.units.move(i, onSkip)
	return over
}

// whyAborted explains what aborted a scope.
func (x *Execution) whyAborted(s int32) string {
	what := "the workflow"
	if s != 0 {
		what = "subworkflow " + x.plan.Subs[s-1].Name
	}
	a := x.scopes.at(s).abort
	by := ""
	if x.plan.scope.isTask(a.by) {
		by = "task " + x.plan.Tasks[a.by].ID
	} else {
		by = "subworkflow " + x.plan.Subs[int(a.by)-len(x.plan.Tasks)].Name
	}
	return fmt.Sprintf("%s aborted %s with exit status %d", by, what, a.exit)
}
