package cloud

import (
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
)

// books records which workflows were begun, and how many tasks remain.
type books struct {
	ensemble ensemble.Ensemble
	standing []standing
	aside    [][]int32       // :: workflow → its ready tasks while the workflow is not begun
	runtime  []time.Duration // :: workflow → total runtime of its tasks
	begun    time.Duration   // total runtime of the unfinished tasks of begun workflows
	open     int             // number of tasks that may still run
	slots    int             // number of tasks that a machine runs at a time
}

// A standing is the status of a workflow.
type standing uint8

const (
	unasked standing = iota
	begun
	deferred // the policy may be asked again
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

// claim returns the policy's input for a decision about a workflow.
func (b *books) claim(k int) ensemble.Claim {
	w := b.ensemble[k]
	slots := time.Duration(b.slots)
	return ensemble.Claim{Workflow: k, Runtime: b.runtime[k] / slots, Path: w.Graph.CriticalPath(w.Runtimes()),
		Begun: b.begun / slots}
}

// decide records a verdict.
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

// end records the end of a task with the given estimate.
func (b *books) end(estimate time.Duration) {
	b.open--
	b.begun -= estimate
}

// again returns the ready tasks of deferred workflows, and resets the status of these workflows so that the policy is
// asked again.
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
