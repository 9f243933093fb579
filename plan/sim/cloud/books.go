package cloud

import (
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
)

// Books say which workflows were begun, and what is still to run of them.
type books struct {
	ensemble ensemble.Ensemble
	standing []standing
	aside    [][]int32       // :: workflow → its ready tasks, while it is not begun
	runtime  []time.Duration // :: workflow → what its tasks take
	begun    time.Duration   // what the tasks take that have not ended of workflows that were begun
	open     int             // tasks that may still run
	slots    int             // tasks that a machine runs at a time
}

// A standing is whether a workflow was begun.
type standing uint8

const (
	unasked standing = iota
	begun
	deferred // it may be asked about again
	rejected
)

func newBooks(e ensemble.Ensemble, slots int) *books {
	b := &books{ensemble: e, slots: slots, open: e.Tasks(), standing: make([]standing, len(e)),
		aside: make([][]int32, len(e))}
	for _, w := range e {
		b.runtime = append(b.runtime, ensemble.Runtime(w))
	}
	return b
}

// claim is what the policy is told of a workflow that it is asked about.
func (b *books) claim(k int) ensemble.Claim {
	w := b.ensemble[k]
	slots := time.Duration(b.slots)
	return ensemble.Claim{Workflow: k, Runtime: b.runtime[k] / slots, Path: w.Graph.CriticalPath(w.Runtimes()),
		Begun: b.begun / slots}
}

// decide takes note of a verdict.
func (b *books) decide(k int, v ensemble.Verdict) {
	switch {
	case v.Begin:
		b.standing[k] = begun
		b.begun += b.runtime[k]
		return
	case v.Never:
		b.standing[k] = rejected
	default:
		b.standing[k] = deferred
	}
	b.open -= len(b.ensemble[k].Tasks)
}

// end takes note of the end of a task that was to take so long.
func (b *books) end(estimate time.Duration) {
	b.open--
	b.begun -= estimate
}

// again returns the ready tasks of workflows that may be asked about again; they will be.
func (b *books) again() (tasks []int32) {
	for k, s := range b.standing {
		if s != deferred {
			continue
		}
		b.standing[k] = unasked
		b.open += len(b.ensemble[k].Tasks)
		tasks = append(tasks, b.aside[k]...)
		b.aside[k] = nil
	}
	return tasks
}
