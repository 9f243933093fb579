package execution

import (
	"fmt"
	"slices"
)

// A gate keeps the tasks of one addition from running until all that they wait for has come. What has come is
// forgotten: a task that ends twice, because it was tried again, is waited for once.
type gate struct {
	first, count int32
	pending      map[Wait]bool
}

// wants reports whether a gate waits for something of a task.
func (g *gate) wants(task int32) bool {
	return slices.ContainsFunc(whens, func(when When) bool { return g.pending[Wait{task, when}] })
}

// held reports whether something that a task waits for has not come.
func (as *additions) held(i int32) bool {
	g := as.lives[i].gate
	return g != nil && len(g.pending) > 0
}

// want has a gate told of a task that it waits for. Gates come one after the other, so that a gate which is told of the
// task already is the last that is.
func (as *additions) want(g *gate, task int32) {
	if all := as.wanted[task]; len(all) > 0 && all[len(all)-1] == g {
		return
	}
	if as.wanted == nil {
		as.wanted = map[int32][]*gate{}
	}
	as.wanted[task] = append(as.wanted[task], g)
}

// addGate makes the gate of an addition, if it waits for anything that has not come. If something cannot come any more,
// the news of that ends its tasks.
func (x *Execution) addGate(a *Addition) {
	g := &gate{first: a.First, count: a.Count, pending: map[Wait]bool{}}
	for _, w := range a.After {
		if w.Task < 0 || w.Task >= a.First || x.outcomeOf(w) == waitMet {
			continue
		}
		g.pending[w] = true
		x.additions.want(g, w.Task)
		if x.outcomeOf(w) == waitVain {
			x.additions.announce(w.Task)
		}
	}
	l := life{added: x.now}
	if len(g.pending) > 0 {
		l.gate = g
	}
	x.additions.admit(l, int(a.Count))
}

// admit keeps tasks that were added, which are alike.
func (as *additions) admit(l life, count int) {
	for range count {
		as.lives = append(as.lives, l)
	}
}

// A waitOutcome is what has become of a Wait.
type waitOutcome uint8

const (
	waitPending waitOutcome = iota // it may come
	waitMet
	waitVain // it cannot come any more, unless the task is tried again
)

// outcomeOf returns what has become of a wait by now. It looks only at the task, and not at those who wait, so that all
// who wait for the same get the same answer.
func (x *Execution) outcomeOf(w Wait) waitOutcome {
	state := x.units.state(w.Task)
	over := state.over()
	switch {
	case w.When == Started && (over || x.additions.lives[w.Task].begun != 0), w.When == Ended && over:
		return waitMet
	case !over || w.When == Started:
		return waitPending
	case (w.When == Succeeded) == (state == StateDone):
		return waitMet
	}
	return waitVain
}

// openGates tells gates what has become of the tasks that they wait for.
func (x *Execution) openGates() {
	for len(x.additions.news) > 0 {
		i := x.additions.nextNews()
		for _, g := range x.additions.wanted[i] {
			x.tell(g, i)
		}
		x.additions.unwant(i)
	}
}

// nextNews takes the first task of which gates have not been told.
func (as *additions) nextNews() int32 {
	i := as.news[0]
	as.news = as.news[1:]
	if len(as.news) == 0 {
		as.news = nil
	}
	return i
}

// unwant forgets the gates that wait for nothing of a task any more.
func (as *additions) unwant(i int32) {
	left := slices.DeleteFunc(as.wanted[i], func(g *gate) bool { return !g.wants(i) })
	if as.wanted[i] = left; len(left) == 0 {
		delete(as.wanted, i)
	}
}

// tell opens a gate when the last thing has come that it waits for, and ends the tasks behind it when something cannot
// come any more.
func (x *Execution) tell(g *gate, i int32) {
	before, vain := len(g.pending), false
	for _, when := range whens {
		if w := (Wait{i, when}); g.pending[w] {
			switch x.outcomeOf(w) {
			case waitMet:
				delete(g.pending, w)
			case waitVain:
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
	case before > 0 && len(g.pending) == 0:
		for k := g.first; k < g.first+g.count; k++ {
			x.unhold(k)
		}
	}
}

// endWaiting skips a task that waits in vain for another one.
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

// inVain reports whether a task waits for what cannot come any more, and from which other task, unless that is one of
// those that are tried again, too.
func (x *Execution) inVain(i int32, again map[int32]bool) (other int32, vain bool) {
	if g := x.additions.lives[i].gate; g != nil {
		for w := range g.pending {
			if x.outcomeOf(w) == waitVain && !again[w.Task] {
				other, vain = max(other, w.Task), true
			}
		}
	}
	return other, vain
}
