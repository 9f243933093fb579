package dag

import (
	"fmt"
	"slices"
)

// A State says where a node stands in one execution of its graph.
type State uint8

const (
	Waiting State = iota // for a parent
	Ready                // every parent is done: it may run, or is running
	Done                 // it succeeded
	Failed               // it failed for good
	Skipped              // below a failed node: it can never run
)

func (s State) String() string {
	return [...]string{"waiting", "ready", "done", "failed", "skipped"}[s]
}

// Counts says how many nodes are in each state; they add up to the graph's length.
type Counts struct{ Waiting, Ready, Done, Failed, Skipped int }

// A Frontier follows one execution of a graph and says which nodes may run next. Each node is released
// exactly once: by Ready at the beginning, or by the Finish of its last parent. Retries are the
// caller's business: a node stays Ready until its last try is told. It is not safe for concurrent use:
// one goroutine owns it.
type Frontier struct {
	g       *Graph
	state   []State
	missing []int // parents of each node that are not done
	count   [Skipped + 1]int
}

// NewFrontier starts an execution of g from the beginning.
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

// Grow follows the graph, which has grown by nodes without edges: they are ready.
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

// Finish says that node i succeeded and returns the children that became ready by it, ascending.
// Telling the end of a node again, by Finish or Fail, changes nothing and returns nil: results may be
// repeated. To end a node that was never released is a defect of the caller and panics.
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

// Fail says that node i failed for good and returns its descendants that can now never run and were
// not skipped before, ascending. A node that waits may fail as well, if it is not to run any more. Repeated calls are
// treated as by Finish.
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

// end moves a node to its last state and reports whether it was not there.
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

// Drop says that node i is not to run, whatever its parents do; ok is false if it is over. Its descendants are the
// caller's business: they wait for it.
func (f *Frontier) Drop(i int) (ok bool) {
	if f.state[i] != Waiting && f.state[i] != Ready {
		return false
	}
	f.set(i, Skipped)
	return true
}

// Reopen takes the end of node i back, so that it may run again; one that is not over stays as it is. Its children wait
// for it again, which must not be done or be reopened as well; those that were skipped stay so until they are reopened.
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

// Counts returns how many nodes are in each state.
func (f *Frontier) Counts() Counts {
	return Counts{f.count[Waiting], f.count[Ready], f.count[Done], f.count[Failed], f.count[Skipped]}
}

// Done reports whether nothing is left to run: every node is done, failed or skipped.
func (f *Frontier) Done() bool { return f.count[Waiting]+f.count[Ready] == 0 }
