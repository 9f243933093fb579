package execution

import "slices"

// The order of tasks and subworkflows is a graph whose nodes are numbered by the scoping. Each unit counts its parents
// that are not done. The functions here propagate the end of a unit to the units that wait for it.

// unblock counts a node as done for its children, and frees those that do not wait for another node.
func (x *Execution) unblock(node int) {
	freed := x.countDone(node)
	if x.frontier.outer != nil {
		x.frontier.unblock(node)
	}
	for _, c := range freed {
		if x.plan.scope.isTask(int32(c)) {
			x.freeTask(int32(c))
		} else {
			x.prepare(x.plan.scope.scopeAt(c))
		}
	}
}

// countDone counts a node as done for its children, and returns the nodes that waited only for this node.
func (x *Execution) countDone(node int) (freed []int) {
	for _, c := range x.plan.scope.nodes.Children(node) {
		switch {
		case x.plan.scope.isTask(int32(c)):
			if u := x.units.at(int32(c)); u.lessPending() {
				freed = append(freed, c)
			}
		case x.plan.scope.isBegin(c):
			if sc := x.scopes.at(x.plan.scope.scopeAt(c)); sc.lessPending() {
				freed = append(freed, c)
			}
		}
	}
	return freed
}

// lessPending counts a parent as done, and reports whether that was the last one and the task is not over.
func (u *unit) lessPending() bool {
	u.pending--
	return u.open()
}

// countReopened counts a node as no longer done for its children.
func (x *Execution) countReopened(node int) {
	for _, c := range x.plan.scope.nodes.Children(node) {
		switch {
		case x.plan.scope.isTask(int32(c)):
			x.block(int32(c))
		case x.plan.scope.isBegin(c):
			x.scopes.at(x.plan.scope.scopeAt(c)).pending++
		}
	}
}

// block counts a parent of a task as no longer done.
func (x *Execution) block(i int32) {
	u := x.units.at(i)
	u.pending++
	if u.state == StateReady || u.state == StatePreparing {
		x.hold(i)
	}
}

// freeTask frees a task whose last parent is done, unless it is a final task, which waits for its scope. A task that
// was marked to fail is now due to fail.
func (x *Execution) freeTask(i int32) {
	if s := x.units.state(i); x.plan.scope.rules(i).Final || s != StateWaiting && s != StateBehind {
		return
	}
	if x.frontier.outer == nil {
		x.frontier.less(i)
	}
	x.free(i)
	if x.units.extra(i).cancel.later {
		x.ripe = append(x.ripe, i)
	}
	if x.frontier.outer != nil && x.units.at(i).job == nil {
		x.frontier.addRest(i)
	}
}

// free moves a task that no longer waits.
func (x *Execution) free(i int32) {
	if x.units.state(i) == StateWaiting && x.scripts.preparing(i) {
		x.units.move(i, onPrepare)
		return
	}
	x.units.move(i, onFree)
}

// place makes a reopened or added task loose, unless it waits.
func (x *Execution) place(i int32) {
	if x.units.at(i).pending > 0 || x.held(i) {
		x.frontier.more(i)
		return
	}
	x.free(i)
	x.frontier.addLoose([]int32{i})
}

// hold makes a free task wait.
func (x *Execution) hold(i int32) {
	x.units.move(i, onHold)
	x.frontier.more(i)
}

// unhold frees a task that waits although its parents are done: its gate opens, its scope closes, or a worker has it
// nevertheless.
func (x *Execution) unhold(i int32) {
	if x.units.state(i) == StateWaiting && x.units.at(i).open() {
		x.frontier.less(i)
		x.free(i)
	}
}

// held reports whether a task must wait even if its parents are done: a final task for the rest of its scope, or an
// added task for its gate.
func (x *Execution) held(i int32) bool {
	if x.plan.Open {
		return x.additions.held(i)
	}
	return x.plan.scope.rules(i).Final && !x.scopes.at(x.plan.scope.around(i)).closing
}

// skipBelow skips all units that wait for any of these nodes, which will never be done.
func (x *Execution) skipBelow(nodes ...int) {
	var skipped []int // nodes; a subworkflow is represented by its end
	for len(nodes) > 0 {
		last := nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		for _, c := range x.plan.scope.nodes.Children(last) {
			switch {
			case x.plan.scope.isTask(int32(c)):
				if !x.units.state(int32(c)).over() {
					x.units.move(int32(c), onSkip)
					nodes, skipped = append(nodes, c), append(skipped, c)
				}
			case x.plan.scope.isBegin(c):
				if s := x.plan.scope.scopeAt(c); !x.scopes.at(s).state.over() {
					x.scopes.move(s, onSkip)
					nodes, skipped = append(nodes, c, c+1), append(skipped, c+1)
				}
			}
		}
	}
	slices.Sort(skipped)
	for _, node := range skipped {
		if i := int32(node); x.plan.scope.isTask(i) {
			x.frontier.drop(i)
			x.over = x.jobs.leave(i, x.over) // its job will not run it
			x.memberOver(i)
		} else {
			x.memberOver(x.plan.scope.unitOf(x.plan.scope.scopeAt(node)))
		}
	}
}

// hopeless reports whether a node failed or was skipped, so that it will not be done unless it is reopened.
func (x *Execution) hopeless(node int) bool {
	if x.plan.scope.isTask(int32(node)) {
		s := x.units.state(int32(node))
		return s == StateFailed || s == StateSkipped
	}
	sc := x.scopes.at(x.plan.scope.scopeAt(node))
	return (sc.state == StateFailed || sc.state == StateSkipped) && !(x.plan.scope.isBegin(node) && sc.begun)
}

// behindFailure reports whether a node waits for a node that failed or was skipped.
func (x *Execution) behindFailure(node int) bool {
	return slices.ContainsFunc(x.plan.scope.nodes.Parents(node), x.hopeless)
}
