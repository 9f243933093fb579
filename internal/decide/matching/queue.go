package matching

import (
	"container/heap"
	"math"
	"slices"
	"sort"
)

// A queue holds the jobs that are not in a slot. Jobs of nearly the same shape share a bucket, so that the best job for
// a slot is found by looking at one job per bucket, however many are queued. The buckets are sorted by their first
// jobs, so that only few buckets need to be examined.
type queue[T any] struct {
	buckets map[shape]*bucket[T]
	sorted  []*bucket[T] // the buckets of the map
	size    int

	round int32     // number of calls of settle
	fresh int       // number of queued jobs added since
	least Resources // no fresh job needs less than this
}

// settle makes the queued jobs old.
func (q *queue[T]) settle() { q.round, q.fresh = q.round+1, 0 }

// A shape holds the properties common to a bucket's jobs: cpus and gpus exactly, and memory, disk and estimate within
// one step of a ladder whose steps are an eighth of an octave (9 %) apart. Finer steps would create more buckets to
// compare; with coarser steps a slot's room would more often end within a step, where the first job of a bucket does
// not represent all its jobs.
type shape struct {
	cpus, gpus         int32
	memory, disk, time int16
}

func (r Resources) shape() shape {
	s := shape{int32(r.CPUs), int32(r.GPUs), step(float64(r.MemoryMiB)), -1, step(r.Time.Seconds() * 1e3)}
	if r.DiskMiB > 0 { // only the few jobs that need disk require a logarithm
		s.disk = step(float64(r.DiskMiB))
	}
	return s
}

func step(x float64) int16 {
	if x < 1 {
		return -1
	}
	return int16(8 * math.Log2(x))
}

// add queues a job at the position determined by its priority and arrival.
func (q *queue[T]) add(j *Job[T]) {
	if q.buckets == nil {
		q.buckets = map[shape]*bucket[T]{}
	}
	s := j.Needs.shape()
	b := q.buckets[s]
	if b == nil {
		b = &bucket[T]{least: j.Needs}
		q.buckets[s] = b
	} else if j.before(b.jobs[0]) {
		q.unlist(b)
	}
	b.least = b.least.least(j.Needs)
	heap.Push(b, j)
	if b.jobs[0] == j {
		q.enlist(b)
	}
	j.Run.add(j)
	q.size++
	j.round = q.round
	if q.fresh++; q.fresh == 1 {
		q.least = j.Needs
	}
	q.least = q.least.least(j.Needs)
}

// remove removes a job from the queue. A bucket that becomes empty is discarded, so that old shapes cost nothing.
func (q *queue[T]) remove(j *Job[T]) {
	s := j.Needs.shape()
	b := q.buckets[s]
	first := b.jobs[0] == j
	if first {
		q.unlist(b)
	}
	heap.Remove(b, int(j.heapIndex))
	switch {
	case b.Len() == 0:
		delete(q.buckets, s)
	case first:
		q.enlist(b)
	}
	j.Run.remove(j)
	q.size--
	if j.round == q.round {
		q.fresh--
	}
	if o := j.overtaken; o != nil && o.slot != nil {
		o.slot.unkeep()
	}
	j.overtaken = nil
}

// enlist inserts a bucket at the position determined by its first job. A slice suffices: moving two thousand pointers
// takes half a microsecond.
func (q *queue[T]) enlist(b *bucket[T]) {
	i := sort.Search(len(q.sorted), func(i int) bool { return b.jobs[0].before(q.sorted[i].jobs[0]) })
	q.sorted = slices.Insert(q.sorted, i, b)
}

func (q *queue[T]) unlist(b *bucket[T]) {
	i := slices.Index(q.sorted, b)
	q.sorted = slices.Delete(q.sorted, i, i+1)
}

// best returns the first job in the queue's order that fits free, or nil. passed is the first job before found that
// does not fit free but would fit whole, the resources of the same slot without any jobs.
func (q *queue[T]) best(free, whole Resources) (found, passed *Job[T]) {
	for _, b := range q.sorted {
		first := b.jobs[0]
		if found != nil && found.before(first) {
			break // it also precedes all jobs of this bucket and of later ones
		}
		j := b.best(&free)
		if j != nil && (found == nil || j.before(found)) {
			found = j
		}
		if j == first || passed != nil && passed.before(first) {
			continue
		}
		if p := b.best(&whole); p != nil && p != j && (passed == nil || p.before(passed)) {
			passed = p
		}
	}
	if found == nil || passed != nil && !passed.before(found) {
		passed = nil
	}
	return found, passed
}

// A bucket is a heap of the queued jobs of one shape, first job first.
type bucket[T any] struct {
	jobs  []*Job[T]
	least Resources // no job of the bucket needs less than this
}

// best returns the first job that fits r, or nil. Unless r ends within the bucket's step of the ladder, either the
// first job of all fits or none does. If least fits but no job does, because the jobs with the smallest needs are no
// longer queued, least is corrected: otherwise the whole bucket would be searched again whenever a job ends.
func (b *bucket[T]) best(r *Resources) *Job[T] {
	if !r.holds(&b.least) {
		return nil
	}
	if first := b.jobs[0]; r.holds(&first.Needs) {
		return first
	}
	least := b.jobs[0].Needs
	found := b.search(0, r, nil, &least)
	if found == nil {
		b.least = least
	}
	return found
}

// search returns the first job among found and the jobs at or below node i of the heap that fit r. It does not search
// below a job that fits, nor below a job that is queued after found, because the jobs below are queued even later. If
// no job is found, the search has examined every job, and least holds the component-wise minimum of their needs.
func (b *bucket[T]) search(i int, r *Resources, found *Job[T], least *Resources) *Job[T] {
	if i >= len(b.jobs) || found != nil && !b.jobs[i].before(found) {
		return found
	}
	needs := &b.jobs[i].Needs
	if r.holds(needs) {
		return b.jobs[i]
	}
	*least = least.least(*needs)
	found = b.search(2*i+1, r, found, least)
	return b.search(2*i+2, r, found, least)
}

func (b *bucket[T]) Len() int           { return len(b.jobs) }
func (b *bucket[T]) Less(i, j int) bool { return b.jobs[i].before(b.jobs[j]) }

func (b *bucket[T]) Swap(i, j int) {
	b.jobs[i], b.jobs[j] = b.jobs[j], b.jobs[i]
	b.jobs[i].heapIndex, b.jobs[j].heapIndex = int32(i), int32(j)
}

// Push and Pop implement container/heap.Interface: they add and remove jobs at the end of the slice.
func (b *bucket[T]) Push(x any) {
	j := x.(*Job[T])
	j.heapIndex = int32(len(b.jobs))
	b.jobs = append(b.jobs, j)
}

func (b *bucket[T]) Pop() any {
	last := len(b.jobs) - 1
	j := b.jobs[last]
	b.jobs[last] = nil
	b.jobs = b.jobs[:last]
	return j
}
