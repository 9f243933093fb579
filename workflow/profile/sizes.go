package profile

import (
	"maps"
	"math"
	"slices"
)

// Sizes holds how much memory tasks of one kind needed, and decides how much the next ones get. Sizes are in MiB.
//
// The method follows Sizey (Bader et al., 2024) and Ponder (Lehmann et al., 2024): the memory is predicted by kind from
// the tasks that have ended, with an offset, and a task that was killed is tried again with the next size. The first
// size is chosen as in Tovar et al. (A job sizing strategy for high-throughput scientific workflows, IEEE TPDS 29(2),
// 2018): the one with the least expected waste, if the next tasks need what the previous ones needed. The offset is the
// rest of a class of sizes, a quarter of an octave: a prediction is up to 19 % above the measured peak.
type Sizes struct {
	needed   map[int]int // :: class of sizes → number of tasks that have ended
	total    int         // of them
	pending  int         // tasks that were killed and have not ended
	exceeded int         // the largest limit that a task exceeded; 0: none has
}

// perOctave is the number of classes of sizes for each doubling.
const perOctave = 4

// mostMiB exceeds the memory of any machine, and can be doubled without overflow.
const mostMiB = 1 << 40

// sizeOf returns the class of a size: the smallest one whose top is not below it.
func sizeOf(mib int) int {
	c := int(math.Ceil(perOctave * math.Log2(float64(max(1, min(mib, mostMiB))))))
	for top(c) < mib && c < perOctave*40 { // rounding
		c++
	}
	return c
}

// top returns the largest size of a class.
func top(class int) int { return int(math.Ceil(math.Exp2(float64(class) / perOctave))) }

// Ended records that a task has ended and needed mib MiB. killed reports whether it was killed before.
func (s *Sizes) Ended(mib int, killed bool) {
	if s.needed == nil {
		s.needed = map[int]int{}
	}
	s.needed[sizeOf(mib)]++
	s.total++
	if killed {
		s.pending--
	}
}

// Killed records that a task was killed because it exceeded a limit. again reports whether it was killed before.
func (s *Sizes) Killed(limit int, again bool) {
	s.exceeded = max(s.exceeded, min(limit, mostMiB))
	if !again {
		s.pending++
	}
}

// Next returns the memory with which a task that exceeded a limit is tried again: the largest size that a task of the
// kind needed. If another task has exceeded more than that, it is twice the largest limit that was exceeded.
func (s *Sizes) Next() int {
	if len(s.needed) > 0 {
		if largest := top(slices.Max(slices.Collect(maps.Keys(s.needed)))); largest > s.exceeded {
			return largest
		}
	}
	return 2 * s.exceeded
}

// failureWeight is the factor by which the memory of a killed attempt counts. It is above 1 because a kill also costs
// time, and one of the task's retries.
const failureWeight = 4

// Start returns the memory for the next task of the kind: the size from least on with the least expected waste. A task
// that needs more than its size wastes that size, and is tried again with the next one. A task that was killed and has
// not ended is assumed to need the next size. Unless a task was killed, Start returns least.
func (s *Sizes) Start(least int) int {
	if s.exceeded == 0 {
		return least
	}
	next := max(least, s.Next())
	best, cost := least, math.Inf(1)
	consider := func(size, within int) {
		over := float64(s.total + s.pending - within)
		if c := float64(size)*(float64(within)+failureWeight*over) + float64(next)*over; c < cost {
			best, cost = size, c
		}
	}
	within := 0
	classes := slices.Sorted(maps.Keys(s.needed))
	for k, c := range classes {
		if top(c) > least && (k == 0 || top(classes[k-1]) <= least) {
			consider(least, within) // with the tasks that least suffices for
		}
		if within += s.needed[c]; top(c) > least {
			consider(top(c), within)
		}
	}
	if len(classes) == 0 || top(classes[len(classes)-1]) <= least {
		consider(least, within)
	}
	consider(next, s.total+s.pending)
	return best
}
