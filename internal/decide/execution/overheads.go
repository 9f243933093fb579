package execution

import (
	"slices"
	"sort"

	"github.com/corral-pilot/corral"
)

// fewHops is the minimum number of measured overheads for which their mean is reported.
const fewHops = 5

// fewStarts is the minimum number of measured overheads for which the starts per second are reported.
const fewStarts = 10

// overheads measures the cluster's overhead between tasks. A task can begin when its parents have ended and a worker
// has room for it. The overhead is the time from the later of two events, the end of its last parent and the previous
// end at its worker, until the task begins. It is a hop if the parent ended last, and reuse if the task waited for the
// worker. Only the middle 90 % of each are averaged, because a lost connection may make one unusually long. If files
// are transferred, a task begins with the transfer of its inputs and ends with that of its outputs: see transfers.
//
// A task does not count if no task ended at its worker before, because it may have waited for the worker. The tasks of
// a clustered job follow each other at the worker; the first one represents the job. A run with retries has no result,
// because the times at which earlier attempts freed their workers are no longer known.
func overheads(x *Execution, r *corral.RunReport) {
	ends := map[int32][]Msec{} // :: worker → ends of tasks there, ascending
	var starts []Msec
	for i := range x.units.tasks {
		if x.units.at(int32(i)).attempt > 1 {
			return
		}
		if t, ok := first(x, i); ok {
			ends[t.worker] = append(ends[t.worker], t.to)
			starts = append(starts, t.from)
		}
	}
	for _, all := range ends {
		slices.Sort(all)
	}
	slices.Sort(starts)
	var hops, reuses []Msec
	for c := range len(x.plan.start) - 1 {
		members := x.plan.tasksOf(c)
		t, ok := foremost(x, members)
		if !ok {
			continue
		}
		switch at, waited := possible(x, members, t, ends[t.worker]); {
		case waited:
			reuses = append(reuses, max(0, t.from-at)) // the clocks of two machines differ
		case at > 0:
			hops = append(hops, max(0, t.from-at))
		}
	}
	if len(hops)+len(reuses) >= fewStarts {
		r.PeakRate = peak(starts)
	}
	r.Hop, r.Hops = typical(hops)
	r.Reuse, r.Reuses = typical(reuses)
}

// A stay is the period in which a task occupied its worker.
type stay struct {
	worker   int32
	from, to Msec
}

// foremost returns the stay of the job's task that started first; ok is false unless one worker did all its tasks.
func foremost(x *Execution, members []int32) (t stay, ok bool) {
	for _, i := range members {
		next, once := first(x, int(i))
		if !once || ok && next.worker != t.worker {
			return t, false
		}
		if !ok || next.from < t.from {
			t, ok = next, true
		}
	}
	return t, ok
}

// typical returns the mean of the middle 90 % and the number of values, or zeros if there are too few.
func typical(all []Msec) (mean corral.Seconds, of int) {
	if len(all) < fewHops {
		return 0, 0
	}
	slices.Sort(all)
	cut := len(all) / 20
	var sum Msec
	for _, one := range all[cut : len(all)-cut] {
		sum += one
	}
	return corral.Seconds(sum.sub(0)) / corral.Seconds(len(all)-2*cut), len(all)
}

// first returns the stay of a task whose first attempt succeeded; ok is false for other tasks.
func first(x *Execution, i int) (at stay, ok bool) {
	t := x.units.at(int32(i))
	at.worker = t.worker
	at.from, _ = x.span(int32(i))
	at.to = t.ended // from then on the next task may begin, while files are transferred back
	return at, t.attempt == 1 && t.started != 0 && x.units.state(int32(i)) == StateDone
}

// possible returns the time at which a job whose first task is t could have begun, given the ends of other tasks, and
// whether it waited for its worker. The time is 0 if no task ended at the worker before. ends lists the ends at the
// worker.
func possible(x *Execution, members []int32, t stay, ends []Msec) (at Msec, waited bool) {
	before := sort.Search(len(ends), func(k int) bool { return ends[k] > t.from })
	if t.to <= t.from {
		before-- // its own end is among them
	}
	if before <= 0 {
		return 0, false
	}
	at, waited = ends[before-1], true
	for _, i := range members {
		for _, p := range x.plan.Graph.Parents(int(i)) {
			if x.plan.clusterOf[p] == x.plan.clusterOf[i] {
				continue // it ran in the same job
			}
			if _, end := x.span(int32(p)); end >= at {
				at, waited = end, false
			}
		}
	}
	return at, waited
}

// peak returns the maximum number of starts within a second. starts are sorted.
func peak(starts []Msec) float64 {
	most, from := 0, 0
	for to, at := range starts {
		for starts[from] <= at-1000 {
			from++
		}
		most = max(most, to-from+1)
	}
	return float64(most)
}
