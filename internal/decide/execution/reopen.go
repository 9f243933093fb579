package execution

import "slices"

// reopen reopens all units of a scope that are not done, and its final tasks. tries is the number of times that the
// scope has failed.
func (x *Execution) reopen(s, tries int32) {
	again := x.reopenScopes(s, tries)
	var tasks []int32
	first, end := x.plan.scope.tasksIn(s)
	for i := first; i < end; i++ {
		if x.reopenTask(i, s) {
			tasks = append(tasks, i)
		}
	}
	x.units.sortOut(first, end)
	x.scopes.mend(again)
	for _, k := range slices.Backward(again) {
		x.scopes.at(k).forget()
		x.count(k)
	}
	x.placeAll(tasks)
	x.prepareAll(s)
	x.check(s)
}

// reopenScopes reopens a scope and the scopes in it that failed or were skipped, and returns all of them that are not
// over now.
func (x *Execution) reopenScopes(s, tries int32) (again []int32) {
	for k := range x.scopes.within(s) {
		state := x.scopes.at(k).state
		if k == s || (state == StateFailed || state == StateSkipped) && !x.scopes.doneAround(k, s) {
			again = append(again, k)
		}
	}
	for _, k := range again {
		switch k {
		case 0: // it is never over
		case s:
			x.reopenScope(k, tries)
		default:
			x.reopenScope(k, 0)
		}
	}
	for k := range x.scopes.within(s) {
		if !x.scopes.at(k).state.over() && !slices.Contains(again, k) {
			again = append(again, k) // the run was cancelled before this one was over, or tasks before it began
		}
		if x.scopes.at(k).unclose() {
			x.holdFinals(k)
		}
	}
	return again
}

// reopenScope lets a subworkflow begin again when its parents are done.
func (x *Execution) reopenScope(s, tries int32) {
	if x.scopes.at(s).begun {
		x.countReopened(x.plan.scope.begin(s))
	}
	if x.scopes.at(s).state != StateWaiting {
		x.scopes.move(s, onReopen)
	}
	x.scopes.at(s).reset(tries)
	x.scripts.reset(x.plan.scope.unitOf(s))
}

// placeAll makes reopened tasks loose, unless they wait.
func (x *Execution) placeAll(tasks []int32) {
	if x.frontier.outer == nil {
		for _, i := range tasks {
			x.place(i)
		}
		return
	}
	for _, i := range tasks {
		if x.units.at(i).open() {
			x.free(i)
		}
	}
	x.frontier.gather()
}

// reopenTask reopens a task that failed, was skipped, or is final, unless its subworkflow is done.
func (x *Execution) reopenTask(i, s int32) bool {
	if x.scopes.doneAround(x.plan.scope.around(i), s) {
		return false
	}
	switch state := x.units.state(i); {
	case state == StateFailed, state == StateDone && x.plan.scope.rules(i).Final:
		x.renew(i)
	case state != StateSkipped:
		return false
	}
	x.units.move(i, onReopen)
	x.scripts.reset(i)
	return true
}
