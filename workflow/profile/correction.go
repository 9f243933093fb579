package profile

import "time"

// A Correction corrects the estimates of one kind of task during a run by the tasks of the kind that have ended. The
// zero value corrects nothing.
//
// The rule is a ratio of two sums. A median of ratios is about as good, but it needs all ratios. Kinds are corrected
// apart, because their estimates differ in opposite directions. The program bench/evidence compares the rule with
// others (corrections).
type Correction struct {
	took, estimated float64 // sums over the tasks that have ended, in seconds
	tasks           int
}

// faith is the weight of the original estimates of a kind: they count like this number of tasks that took exactly the
// mean estimate. So a single unusual task does not change the estimates of all others by its whole ratio.
const faith = 1

// With returns c with one more task that has ended.
func (c Correction) With(took, estimate time.Duration) Correction {
	return Correction{c.took + took.Seconds(), c.estimated + estimate.Seconds(), c.tasks + 1}
}

// Factor returns the factor by which the remaining tasks of the kind are expected to take longer than estimated: the
// sum of the runtimes over the sum of their estimates, shrunk towards 1 by faith. If the estimates were only assumed,
// the first measurement replaces them and the factor is not shrunk. ok is false if no task has ended, or if the
// estimates of those that have ended are all 0.
func (c Correction) Factor(assumed bool) (factor float64, ok bool) {
	if c.tasks == 0 || c.estimated == 0 {
		return 1, false
	}
	prior := faith * c.estimated / float64(c.tasks)
	if assumed {
		prior = 0
	}
	return (c.took + prior) / (c.estimated + prior), true
}

// Kinds returns the kind of each task of transformations listed by Tasks, as a number from 1. Equal numbers mean equal
// transformations.
func Kinds(tasks []Subject) []int32 {
	kinds, numbers := make([]int32, len(tasks)), map[string]int32{}
	for i := range tasks {
		n := numbers[tasks[i].Transformation]
		if n == 0 {
			n = int32(len(numbers) + 1)
			numbers[tasks[i].Transformation] = n
		}
		kinds[i] = n
	}
	return kinds
}
