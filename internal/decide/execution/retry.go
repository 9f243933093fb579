package execution

// retry reopens tasks that failed permanently, and the tasks that were skipped below them, which wait for them. Tasks
// that were only marked to fail are unmarked.
func (x *Execution) retry(tasks []int32) {
	if x.plan.Open {
		x.retryAdded(tasks)
		return
	}
	for _, i := range tasks {
		if !x.units.has(i) {
			continue
		}
		x.unmark(i)
		if x.units.state(i) == StateFailed && x.unretriable(i) == "" {
			x.tryAgain(i)
		}
	}
}

// unretriable explains why a failed task cannot be retried now; it returns "" if it can.
func (x *Execution) unretriable(i int32) string {
	s := x.plan.scope.around(i)
	if x.scopes.doneAround(s, 0) {
		return "failed, and its subworkflow is done all the same"
	}
	for ; ; s = x.plan.scope.outer[s] {
		if sc := x.scopes.at(s); sc.state == StateJudging || sc.closing && sc.last > 0 {
			return "cannot be tried again while what runs last, its final task or its POST script, is still to end"
		}
		if s == 0 {
			return ""
		}
	}
}

// tryAgain reopens a failed task. It also reopens the subworkflows around it that are over, with all other units in
// them that are not done, and the workflow if it was aborted. If a unit before the task also failed, the task becomes
// skipped.
func (x *Execution) tryAgain(i int32) {
	unit, first, last := i, int(i), int(i) // the nodes of the unit
	for s := x.plan.scope.around(i); s != 0; s = x.plan.scope.outer[s] {
		if x.scopes.at(s).state.over() {
			unit, first, last = x.plan.scope.unitOf(s), x.plan.scope.begin(s), x.plan.scope.end(s)
		}
	}
	s := x.plan.scope.scopeOf(unit)
	switch {
	case x.scopes.at(0).abort != nil:
		x.reopen(0, 0)
		return
	case x.behindFailure(first):
		x.turnSkipped(i)
		return
	}
	x.scopes.at(s).forgive()
	var tasks []int32
	if unit == i {
		x.reopenTask(i, s)
		tasks = append(tasks, i)
	} else {
		x.reopen(x.plan.scope.scopeOfUnit(unit), 0)
	}
	tasks = append(tasks, x.reopenBelow(last)...)
	tasks = append(tasks, x.reopenFinals(s)...)
	for k := range x.scopes.within(s) {
		x.count(k)
	}
	x.placeAll(tasks)
	x.prepareAll(s)
	x.check(s)
}

// turnSkipped turns a failed task into a skipped one.
func (x *Execution) turnSkipped(i int32) {
	x.renew(i)
	x.units.move(i, onReopen)
	x.units.move(i, onSkip)
	x.scopes.at(x.plan.scope.around(i)).forgive()
}

// reopenBelow reopens the units that were skipped below a node that is no longer over, unless they are behind another
// failure. It returns their tasks.
func (x *Execution) reopenBelow(node int) (tasks []int32) {
	graph, scoping := x.plan.scope.nodes, &x.plan.scope
	below := map[int]bool{node: true}
	begins := map[int]bool{} // nodes that were reopened; the ends of their subworkflows are with them
	for _, at := range graph.Order() {
		if !below[at] || at != node && !begins[at-1] && !x.skippedFirst(at) {
			continue
		}
		for _, child := range graph.Children(at) {
			below[child] = true
		}
		switch i := int32(at); {
		case at == node:
		case scoping.isTask(i):
			x.units.move(i, onReopen)
			x.scripts.reset(i)
			tasks = append(tasks, i)
		case scoping.isBegin(at):
			x.reopenScope(scoping.scopeAt(at), 0)
			begins[at] = true
		}
	}
	return tasks
}

// skippedFirst reports whether a task, or a subworkflow that begins with a node, was skipped and is not behind another
// failure.
func (x *Execution) skippedFirst(node int) bool {
	switch {
	case x.plan.scope.isTask(int32(node)):
		return x.units.state(int32(node)) == StateSkipped && !x.behindFailure(node)
	case x.plan.scope.isBegin(node):
		sc := x.scopes.at(x.plan.scope.scopeAt(node))
		return sc.state == StateSkipped && !sc.begun && !x.behindFailure(node)
	}
	return false
}

// reopenFinals reopens the final tasks of a scope, which run again when the other members are over. It returns them.
func (x *Execution) reopenFinals(s int32) (tasks []int32) {
	sc := x.scopes.at(s)
	if !sc.unclose() {
		return nil
	}
	for i := range x.plan.scope.finals(s) {
		if x.units.state(i) == StateFailed {
			sc.forgive()
		}
		if x.reopenTask(i, s) {
			tasks = append(tasks, i)
		}
	}
	return tasks
}
