package execution

import (
	"fmt"
	"slices"
)

// A gate prevents the tasks of one addition from running until all their Conditions are met. A Condition that has been
// met is removed: if the other task is retried and ends again, the gate does not wait again.
type gate struct {
	first, count int32
	pending      map[Condition]bool
}

// wants reports whether a gate waits for an event of a task.
func (g *gate) wants(task int32) bool {
	return slices.ContainsFunc(whens, func(when When) bool { return g.pending[Condition{task, when}] })
}

// held reports whether a closed gate holds a task.
func (as *additions) held(i int32) bool {
	g := as.lives[i].gate
	return g != nil && len(g.pending) > 0
}

// want registers a gate with a task that it waits for. Additions are made one after another, so a gate that is already
// registered is the last one.
func (as *additions) want(g *gate, task int32) {
	if all := as.wanted[task]; len(all) > 0 && all[len(all)-1] == g {
		return
	}
	if as.wanted == nil {
		as.wanted = map[int32][]*gate{}
	}
	as.wanted[task] = append(as.wanted[task], g)
}

// addGate makes the gate of an addition, if it has Conditions that are not met. If a Condition can no longer be met,
// the announcement ends its tasks.
func (x *Execution) addGate(a *Addition) {
	g := &gate{first: a.First, count: a.Count, pending: map[Condition]bool{}}
	for _, w := range a.After {
		if w.Task < 0 || w.Task >= a.First || x.conditionStateOf(w) == conditionMet {
			continue
		}
		g.pending[w] = true
		x.additions.want(g, w.Task)
		if x.conditionStateOf(w) == conditionVain {
			x.additions.announce(w.Task)
		}
	}
	l := life{added: x.now}
	if len(g.pending) > 0 {
		l.gate = g
	}
	x.additions.admit(l, int(a.Count))
}

// admit adds the lives of similar tasks.
func (as *additions) admit(l life, count int) {
	for range count {
		as.lives = append(as.lives, l)
	}
}

// A conditionState is the state of a Condition.
type conditionState uint8

const (
	conditionPending conditionState = iota // it may be met
	conditionMet
	conditionVain // it can no longer be met, unless the task is retried
)

// conditionStateOf returns the current state of a Condition. It depends only on the awaited task, so that all gates
// that wait for the same event get the same answer.
func (x *Execution) conditionStateOf(w Condition) conditionState {
	state := x.units.state(w.Task)
	over := state.over()
	switch {
	case w.When == Started && (over || x.additions.lives[w.Task].begun != 0), w.When == Ended && over:
		return conditionMet
	case !over || w.When == Started:
		return conditionPending
	case (w.When == Succeeded) == (state == StateDone):
		return conditionMet
	}
	return conditionVain
}

// openGates notifies gates that tasks for which they wait have begun or ended.
func (x *Execution) openGates() {
	for len(x.additions.news) > 0 {
		i := x.additions.nextNews()
		for _, g := range x.additions.wanted[i] {
			x.notify(g, i)
		}
		x.additions.unwant(i)
	}
}

// nextNews removes and returns the first task about which gates have not been notified.
func (as *additions) nextNews() int32 {
	i := as.news[0]
	as.news = as.news[1:]
	if len(as.news) == 0 {
		as.news = nil
	}
	return i
}

// unwant unregisters the gates that no longer wait for a task.
func (as *additions) unwant(i int32) {
	left := slices.DeleteFunc(as.wanted[i], func(g *gate) bool { return !g.wants(i) })
	if as.wanted[i] = left; len(left) == 0 {
		delete(as.wanted, i)
	}
}

// notify opens a gate when its last Condition is met, and ends its tasks when a Condition can no longer be met.
func (x *Execution) notify(g *gate, i int32) {
	vain := false
	for _, when := range whens {
		if w := (Condition{i, when}); g.pending[w] {
			switch x.conditionStateOf(w) {
			case conditionMet:
				delete(g.pending, w)
			case conditionVain:
				vain = true
			}
		}
	}
	switch {
	case vain:
		for k := g.first; k < g.first+g.count; k++ {
			if !x.units.state(k).over() {
				x.endWaiting(k, i)
			}
		}
	case len(g.pending) == 0:
		for k := g.first; k < g.first+g.count; k++ {
			x.unhold(k)
		}
	}
}

// endWaiting skips a task that waits for another in vain.
func (x *Execution) endWaiting(i, other int32) {
	how := "did not succeed"
	if x.units.state(other) == StateDone {
		how = "did not fail"
	}
	x.units.attribute(i, Never)
	x.units.explain(i, fmt.Sprintf("task %s, which it waits for, %s", x.plan.Tasks[other].ID, how))
	x.skip(i, nil)
	x.memberOver(i)
}

// inVain reports whether a task waits for another in vain, and returns that task. It ignores tasks that are retried as
// well.
func (x *Execution) inVain(i int32, again map[int32]bool) (other int32, vain bool) {
	if g := x.additions.lives[i].gate; g != nil {
		for w := range g.pending {
			if x.conditionStateOf(w) == conditionVain && !again[w.Task] {
				other, vain = max(other, w.Task), true
			}
		}
	}
	return other, vain
}
