package execution

import (
	"slices"
	"sort"

	"github.com/corral-pilot/corral"
)

// fewHops is the number of tasks whose overhead must be known before the mean is reported.
const fewHops = 5

// fewStarts is the number of them before the starts per second are reported.
const fewStarts = 10

// overheads measures the time that the cluster takes between tasks. A task begins as soon as its parents have ended and
// a worker has room for it: the time from the later of the two, the end of its last parent and the last end at its
// worker before it began, until it begins is the cluster's. It is called a hop if the parent ended last, and reuse if
// the task waited for the worker. The middle 90 % of each are averaged: one that a lost connection made long is not
// typical. A task begins with the way of its inputs, and ends with that of its outputs, where these travel: see
// transfers.
//
// No task counts at a worker where none has ended before: it may have waited for the worker. Tasks of a clustered job
// follow each other at the worker; the first one stands for the job. A run in which a task was tried again has no
// result, because it is not known any more when its earlier attempts made room at their workers.
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
		case at > 0 && waited:
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

// A stay is the time that a task had its worker.
type stay struct {
	worker   int32
	from, to Msec
}

// foremost returns the stay of the task of a job that started first; ok is false if they were not all done by one
// worker.
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

// typical returns the mean of the middle 90 %, and the number of values; zeros if they are too few.
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

// first returns the stay of a task whose first attempt was its last; ok is false for any other.
func first(x *Execution, i int) (at stay, ok bool) {
	t := x.units.at(int32(i))
	at.worker = t.worker
	at.from, _ = x.span(int32(i))
	at.to = t.ended // then the next one may begin, while its files are on their way back
	return at, t.attempt == 1 && t.started != 0 && x.units.state(int32(i)) == StateDone
}

// possible returns when a job whose first task is t could have begun, as far as the ends of other tasks show, and
// whether it waited for its worker; 0 if none ended there before. ends are those there.
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
