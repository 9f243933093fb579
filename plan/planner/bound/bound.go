// Package bound computes a lower bound on the cpus of a plan that meets a deadline: the maximum of the energetic bound,
// a packing bound with dual-feasible functions, and variants of both for tasks that need several cpus. It uses only the
// time windows in which tasks have to run, so that it holds for any shape of pilots, any number of sites and any order
// of the tasks.
package bound

import (
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A job is a task in the form that the bound uses. Times are in units of at least a millisecond, from the beginning of
// the plan.
type job struct {
	need   int64 // cpus
	length int64 // positive: a task without duration needs no cpu
	head   int64 // its earliest start in any schedule: the longest path to it
	// Its latest start in a schedule that meets the deadline: the deadline less the longest path from its start.
	latest int64
}

// within returns the minimum time for which a job runs inside a window, wherever it is placed between its head and its
// deadline: the minimum is reached by shifting the job as far as possible to the left or to the right.
func (j job) within(w interval) int64 {
	return max(0, min(j.length, w.length(), j.head+j.length-w.from, w.to-j.latest))
}

// CPUs returns a number of cpus below which no plan can meet the deadline, given that the workers of the first pilot
// can be in the cluster at the time first. ok is false if no number of cpus suffices. The cluster's hop lies between a
// task and its child. The bound ignores that pilots hold cpus before they are ready; it may therefore be too low, but
// is never too high.
func CPUs(p plan.Problem, first, deadline time.Duration) (cpus int, ok bool) {
	jobs, ok := jobsOf(p, first, deadline)
	if !ok {
		return 0, false
	}
	return int(fewest(jobs, boundWork)), true
}

// Energetic returns the energetic bound alone, or 0 if the deadline cannot be met: the maximum over all windows of time
// of the cpus that the tasks need in the window, wherever they are placed.
func Energetic(p plan.Problem, first, deadline time.Duration) int {
	jobs, ok := jobsOf(p, first, deadline)
	if loads := energetic(jobs, boundWork); ok && len(loads) > 0 {
		return int(loads[0].roundUp())
	}
	return 0
}

// jobsOf returns the tasks with a duration and the windows in which they must run; ok is false if a window is too
// short.
func jobsOf(p plan.Problem, first, deadline time.Duration) (all []job, ok bool) {
	work := quickest(p)
	tasks, graph := work.Tasks, work.Graph
	unit := unitOf(work)
	hop, begin := int64(p.Cluster.Hop/unit), int64(first/unit)
	end := int64((deadline + unit - 1) / unit)
	length := make([]int64, len(tasks))
	head := make([]int64, len(tasks))
	latest := make([]int64, len(tasks))
	order := graph.Order()
	for _, i := range order {
		length[i] = int64(tasks[i].Runtime / unit)
		head[i] = begin
		for _, parent := range graph.Parents(i) {
			head[i] = max(head[i], head[parent]+length[parent]+hop)
		}
	}
	for _, i := range slices.Backward(order) {
		latest[i] = end - length[i]
		for _, child := range graph.Children(i) {
			latest[i] = min(latest[i], latest[child]-hop-length[i])
		}
		if latest[i] < head[i] {
			return nil, false
		}
		if length[i] > 0 {
			all = append(all, job{int64(tasks[i].Needs.CPUs), length[i], head[i], latest[i]})
		}
	}
	return all, true
}

// quickest returns the work with the shortest time of each task, without the latency of file transfers: tasks that
// share a job incur the latency only once, and the grouping is not known.
func quickest(p plan.Problem) plan.Work {
	p.Sites, p.Present = slices.Clone(p.Sites), slices.Clone(p.Present)
	for i := range p.Sites {
		p.Sites[i].Transfer.Latency = 0
	}
	for i := range p.Present {
		p.Present[i].Transfer.Latency = 0
	}
	return plan.Quickest(p)
}

// unitOf returns the unit of time of a bound: a millisecond, or more to avoid an overflow of the total work. Runtimes
// are rounded down to this unit and the deadline is rounded up, so that the bound remains valid.
func unitOf(w plan.Work) time.Duration {
	unit := time.Millisecond
	var high, low, carry uint64
	for _, t := range w.Tasks {
		h, l := bits.Mul64(uint64(max(t.Runtime, 0)/unit), uint64(max(t.Needs.CPUs, 1)))
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	for ; high > 0 || low > 1<<60; unit *= 2 {
		low = low>>1 | high<<63
		high >>= 1
	}
	return unit
}

// boundWork is the maximum number of steps of a bound; each step takes a few nanoseconds.
const boundWork = 400_000_000

// fewest returns a lower bound on the cpus for jobs: the maximum of the energetic bound, the packing bound, and the
// variants of both for needs of several cpus, within a number of steps.
func fewest(jobs []job, steps int) int64 {
	cpus := int64(0)
	for _, j := range jobs {
		cpus = max(cpus, j.need)
	}
	loads := energetic(jobs, steps/2)
	if len(loads) > 0 {
		cpus = max(cpus, loads[0].roundUp(), packed(jobs, loads, steps/4))
	}
	return wide(jobs, cpus, loads, steps/4)
}
