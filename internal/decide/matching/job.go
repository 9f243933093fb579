package matching

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Resources are what a job needs, or what a slot has to offer.
type Resources struct {
	corral.Resources
	Time time.Duration // of a job: its estimate; of a slot: the longest estimate that it can take
}

// holds reports whether a job with these needs fits into r. It is asked of each bucket of the queue, so it takes
// pointers: copies would cost more than the comparison.
func (r *Resources) holds(needs *Resources) bool {
	return needs.Time <= r.Time && needs.FitIn(r.Resources)
}

// least returns the smaller of each.
func (r Resources) least(s Resources) Resources {
	return Resources{corral.Resources{
		CPUs: min(r.CPUs, s.CPUs), MemoryMiB: min(r.MemoryMiB, s.MemoryMiB),
		GPUs: min(r.GPUs, s.GPUs), DiskMiB: min(r.DiskMiB, s.DiskMiB),
	}, min(r.Time, s.Time)}
}

// A Job is what the matching knows of a job. The exported fields are the caller's, which must not change them
// while the job is queued, that is from Push or Restore until Match or Remove returns its Value. A million jobs
// may be queued, so what only few of them need is behind a pointer, and what matters once a slot has a job is
// in held.
type Job[T any] struct {
	Value    T       // what Match returns for it
	Run      *Run[T] // must be set while it is queued; nil: its estimate is believed
	Needs    Resources
	Class    int     // highest first
	Priority float64 // of one class highest first

	arrived   int64         // its number among all that were pushed; breaks ties of priority
	heapIndex int           // in its bucket
	runIndex  int           // among its run's queued jobs
	overtaken *overtaken[T] // nil: it was not overtaken since it was queued
}

// overtaken says since when jobs behind this one start on slots that could hold it if they were empty.
type overtaken[T any] struct {
	since time.Time
	slot  *Slot[T] // which is kept free for the job; nil: none yet
}

// before is the order of the queue.
func (j *Job[T]) before(k *Job[T]) bool {
	if j.Class != k.Class {
		return j.Class > k.Class
	}
	if j.Priority != k.Priority {
		return j.Priority > k.Priority
	}
	return j.arrived < k.arrived
}

// A Run is the jobs that are removed together and share a pace: how long they took, compared with their
// estimates. The pace is the ratio of two sums, so that one long job outweighs many short ones, and both sums
// forget slowly, so that the pace follows a run whose later tasks differ from its first. The zero Run has no
// jobs and believes their estimates.
type Run[T any] struct {
	actual, estimated float64 // seconds
	queued            []*Job[T]
}

// paceKeeps is what an observation leaves of the sums: about the last 64 count.
const paceKeeps = 1 - 1.0/64

// Observe notes how long a job, or one task of a job, took and what had been estimated for it.
func (r *Run[T]) Observe(actual, estimated time.Duration) {
	r.actual = paceKeeps*r.actual + max(0, actual.Seconds())
	r.estimated = paceKeeps*r.estimated + estimated.Seconds()
}

// expect says how long the job will probably take: its estimate, corrected by what was observed so far.
func (j *Job[T]) expect() time.Duration {
	if r := j.Run; r != nil && r.estimated > 0 {
		return time.Duration(float64(j.Needs.Time) * r.actual / r.estimated)
	}
	return j.Needs.Time
}

// add and remove keep the list of the run's queued jobs, in no order, so that a run is removed without looking
// at the jobs of the others.
func (r *Run[T]) add(j *Job[T]) {
	j.runIndex = len(r.queued)
	r.queued = append(r.queued, j)
}

func (r *Run[T]) remove(j *Job[T]) {
	last := len(r.queued) - 1
	moved := r.queued[last]
	r.queued[j.runIndex], moved.runIndex = moved, j.runIndex
	r.queued[last] = nil
	r.queued = r.queued[:last]
}
