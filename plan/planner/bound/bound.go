// Package bound tells with how few cpus no plan can meet a deadline: the largest of the energetic bound, of a packing
// bound with dual-feasible functions, and of both for tasks of several cpus. It looks at nothing but the time in which
// each task has to run, so that it holds for any shape of pilots, any number of sites and any order of the tasks.
package bound

import (
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A job is a task as the bound sees it. Times are in units of at least a millisecond, from the beginning of the plan.
type job struct {
	need   int64 // cpus
	length int64 // above 0: what takes no time takes no cpu
	head   int64 // no schedule starts it earlier: the longest path to it
	latest int64 // and none that meets the deadline starts it later: the deadline less the longest path from its start
}

// within is the least time that a job runs inside a window, wherever it is between its head and its deadline: what is
// left when it is shifted as far to the left, or as far to the right, as it goes.
func (j job) within(w interval) int64 {
	return max(0, min(j.length, w.length(), j.head+j.length-w.from, w.to-j.latest))
}

// CPUs returns a number of cpus such that with fewer no plan can meet the deadline, if the first pilot can have its
// workers in the cluster at first; not ok if it cannot be met with any number. Between a task and one that waits for it
// lies the cluster's hop. Pilots hold cpus before they are ready, too, which the bound leaves out; it may therefore be
// lower than what can be reached, and never higher.
func CPUs(p plan.Problem, first, deadline time.Duration) (cpus int, ok bool) {
	jobs, ok := jobsOf(p, first, deadline)
	if !ok {
		return 0, false
	}
	return int(fewest(jobs, boundWork)), true
}

// Energetic is the energetic bound alone, 0 if the deadline cannot be met: the most that the tasks of some window of
// time need in it, wherever they are placed.
func Energetic(p plan.Problem, first, deadline time.Duration) int {
	jobs, ok := jobsOf(p, first, deadline)
	if loads := energetic(jobs, boundWork); ok && len(loads) > 0 {
		return int(loads[0].roundUp())
	}
	return 0
}

// jobsOf returns the tasks that take time, with the windows in which each must run; ok is false if one has too little
// time.
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

// quickest is the work with each task as it is where it takes the least time, but for the latency of its files: tasks
// that share a job have that once, and which do is not known.
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

// unitOf is the unit of time of a bound: a millisecond, or more if the work would otherwise be too large a number.
// Runtimes are rounded down to it and the deadline up, so that the bound stays one.
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

// boundWork is how many steps a bound may take, each some nanoseconds.
const boundWork = 400_000_000

// fewest returns a number of cpus that jobs cannot do without: the most that the energetic bound, the packing bound,
// and both for needs of several cpus show within some steps of work.
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
