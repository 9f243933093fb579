package matching

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Resources are the needs of a job, or the capacity of a slot.
type Resources struct {
	corral.Resources
	// Time is a job's estimate, on hosts of speed 1, or the longest estimate that a slot can take at its speed.
	Time time.Duration
}

// holds reports whether a job with these needs fits into r. It is called for each bucket of the queue, so its
// parameters are pointers: copies would cost more than the comparison.
func (r *Resources) holds(needs *Resources) bool {
	return needs.Time <= r.Time && needs.FitIn(r.Resources)
}

// least returns the component-wise minimum.
func (r Resources) least(s Resources) Resources {
	return Resources{corral.Resources{
		CPUs: min(r.CPUs, s.CPUs), MemoryMiB: min(r.MemoryMiB, s.MemoryMiB),
		GPUs: min(r.GPUs, s.GPUs), DiskMiB: min(r.DiskMiB, s.DiskMiB),
	}, min(r.Time, s.Time)}
}

// A Job is the matching's view of a job. The exported fields belong to the caller, which must not change them while the
// job is queued, that is, from Push or Restore until Match or Remove returns the job's Value. A million jobs may be
// queued, so data that only few jobs need is behind a pointer, and data that is needed only once a slot has the job is
// in held.
type Job[T any] struct {
	Value    T       // returned by Match for the job
	Run      *Run[T] // must be set while the job is queued; if nil, the estimate is believed
	Needs    Resources
	Class    int     // highest first
	Priority float64 // within a class, highest first

	arrived   int64         // sequence number of the job's Push; breaks ties of priority
	heapIndex int32         // in its bucket
	runIndex  int32         // among its run's queued jobs
	round     int32         // of the queue, when the job was added
	overtaken *overtaken[T] // nil if the job has not been overtaken since it was queued
}

// overtaken records since when jobs behind this one have been starting on slots that could hold this job if they were
// empty.
type overtaken[T any] struct {
	since time.Time
	slot  *Slot[T] // kept free for the job; nil: none yet
}

// before defines the order of the queue.
func (j *Job[T]) before(k *Job[T]) bool {
	if j.Class != k.Class {
		return j.Class > k.Class
	}
	if j.Priority != k.Priority {
		return j.Priority > k.Priority
	}
	return j.arrived < k.arrived
}

// A Run is a group of jobs that can be removed together and share a pace: the ratio of their actual times to their
// estimates. The pace is a ratio of two sums, so that one long job outweighs many short ones, and both sums decay
// slowly, so that the pace follows a run whose later tasks differ from its first. The zero Run has no jobs, and uses
// the estimates of its jobs unchanged.
type Run[T any] struct {
	actual, estimated float64 // seconds
	queued            []*Job[T]
}

// paceKeeps is the factor by which an observation reduces the sums, so that about the last 64 observations count.
const paceKeeps = 1 - 1.0/64

// Observe records the estimated time of a job, or of one task of a job, and its actual time on a host with the given
// speed. The pace is for hosts of speed 1, so that a slow host is not taken for a wrong estimate.
func (r *Run[T]) Observe(actual, estimated time.Duration, speed corral.Speed) {
	r.actual = paceKeeps*r.actual + max(0, actual.Seconds())*speed.Factor()
	r.estimated = paceKeeps*r.estimated + estimated.Seconds()
}

// expect returns the expected duration of the job on a host of speed 1: its estimate, corrected by the observations so
// far.
func (j *Job[T]) expect() time.Duration {
	if r := j.Run; r != nil && r.estimated > 0 {
		return time.Duration(float64(j.Needs.Time) * r.actual / r.estimated)
	}
	return j.Needs.Time
}

// add and remove maintain the unordered list of the run's queued jobs, so that a run can be removed without looking
// at the jobs of other runs.
func (r *Run[T]) add(j *Job[T]) {
	j.runIndex = int32(len(r.queued))
	r.queued = append(r.queued, j)
}

func (r *Run[T]) remove(j *Job[T]) {
	last := len(r.queued) - 1
	moved := r.queued[last]
	r.queued[j.runIndex], moved.runIndex = moved, j.runIndex
	r.queued[last] = nil
	r.queued = r.queued[:last]
}
