package dag

import (
	"fmt"
	"slices"
)

// A State is the state of a node in one execution of its graph.
type State uint8

const (
	Waiting State = iota // for its parents
	Ready                // all parents are done: it may run, or is running
	Done                 // it succeeded
	Failed               // it failed permanently
	Skipped              // a descendant of a failed node: it can never run
)

func (s State) String() string {
	return [...]string{"waiting", "ready", "done", "failed", "skipped"}[s]
}

// Counts holds the number of nodes in each state; the sum is the graph's length.
type Counts struct{ Waiting, Ready, Done, Failed, Skipped int }

// A Frontier tracks one execution of a graph and determines which nodes may run next. Each node is released exactly
// once: by Ready at the beginning, or by the Finish of its last parent. Retries are up to the caller: a node stays
// Ready until the end of its last attempt is reported. It is not safe for concurrent use; one goroutine must own it.
type Frontier struct {
	g       *Graph
	state   []State
	missing []int // number of unfinished parents per node
	count   [Skipped + 1]int
}

// NewFrontier starts an execution of g.
func NewFrontier(g *Graph) *Frontier {
	f := &Frontier{g: g, state: make([]State, g.Len()), missing: make([]int, g.Len())}
	f.count[Waiting] = g.Len()
	for i := range g.Len() {
		if f.missing[i] = len(g.Parents(i)); f.missing[i] == 0 {
			f.set(i, Ready)
		}
	}
	return f
}

// Grow adds the nodes by which the graph has grown. They have no edges, and are ready.
func (f *Frontier) Grow() {
	for range f.g.Len() - len(f.state) {
		f.state, f.missing = append(f.state, Ready), append(f.missing, 0)
		f.count[Ready]++
	}
}

func (f *Frontier) set(i int, s State) {
	f.count[f.state[i]]--
	f.count[s]++
	f.state[i] = s
}

// Ready returns the nodes that are ready now, ascending.
func (f *Frontier) Ready() []int {
	ready := make([]int, 0, f.count[Ready])
	for i, s := range f.state {
		if s == Ready {
			ready = append(ready, i)
		}
	}
	return ready
}

// Finish records that node i succeeded, and returns the children that became ready, ascending. Repeated calls of Finish
// or Fail for a node have no effect and return nil, because results may be repeated. Ending a node that was never
// released is a bug of the caller and panics.
func (f *Frontier) Finish(i int) (newlyReady []int) {
	if !f.end(i, Done) {
		return nil
	}
	for _, c := range f.g.Children(i) {
		if f.missing[c]--; f.missing[c] == 0 && f.state[c] == Waiting {
			f.set(c, Ready)
			newlyReady = append(newlyReady, c)
		}
	}
	return newlyReady
}

// Fail records that node i failed permanently, and returns its descendants that can no longer run and were not skipped
// before, ascending. A waiting node may also fail, if it is not to run any more. Repeated calls are handled as in
// Finish.
func (f *Frontier) Fail(i int) (skipped []int) {
	if !f.end(i, Failed) {
		return nil
	}
	for todo := []int{i}; len(todo) > 0; {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range f.g.Children(last) {
			if f.state[c] == Waiting {
				f.set(c, Skipped)
				skipped = append(skipped, c)
				todo = append(todo, c)
			}
		}
	}
	slices.Sort(skipped)
	return skipped
}

// end moves a node to its final state, and reports false if it was already there.
func (f *Frontier) end(i int, s State) bool {
	switch was := f.state[i]; {
	case was == Ready, was == Waiting && s == Failed:
		f.set(i, s)
		return true
	case was == Done, was == Failed:
		return false
	}
	panic(fmt.Sprintf("dag: node %d ended while %s", i, f.state[i]))
}

// Drop prevents node i from running, whatever the state of its parents; ok is false if it has ended. The caller has to
// handle its descendants, which wait for it.
func (f *Frontier) Drop(i int) (ok bool) {
	if f.state[i] != Waiting && f.state[i] != Ready {
		return false
	}
	f.set(i, Skipped)
	return true
}

// Reopen reverts the end of node i, so that it may run again; it has no effect on a node that has not ended. Its
// children wait for it again; they must not be done, or must also be reopened. Skipped descendants stay skipped until
// they are reopened.
func (f *Frontier) Reopen(i int) {
	switch f.state[i] {
	case Waiting, Ready:
		return
	case Done:
		for _, c := range f.g.Children(i) {
			if f.missing[c]++; f.state[c] == Ready {
				f.set(c, Waiting)
			}
		}
	}
	next := Waiting
	if f.missing[i] == 0 {
		next = Ready
	}
	f.set(i, next)
}

// State returns the state of node i.
func (f *Frontier) State(i int) State { return f.state[i] }

// Counts returns the number of nodes in each state.
func (f *Frontier) Counts() Counts {
	return Counts{f.count[Waiting], f.count[Ready], f.count[Done], f.count[Failed], f.count[Skipped]}
}

// Done reports whether no node is left to run: every node is done, failed or skipped.
func (f *Frontier) Done() bool { return f.count[Waiting]+f.count[Ready] == 0 }
