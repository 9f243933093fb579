package pool

import (
	"container/heap"
	"math"
	"time"

	"github.com/corral-pilot/corral"
)

// A room is what a worker can offer a job.
type room struct {
	cpus, memory int
	left         time.Duration
}

func (e *entry) fits(r room) bool {
	return e.job.CPUs <= r.cpus && e.job.MemoryMiB <= r.memory && e.estimate <= r.left
}

// before is the order of the queue: highest priority first, then first come, first served.
func (e *entry) before(f *entry) bool {
	if e.job.Priority != f.job.Priority {
		return e.job.Priority > f.job.Priority
	}
	return e.arrived < f.arrived
}

// A queue holds the jobs that no worker has. Jobs of nearly one shape share a bucket, so that the best
// job for a worker is found by looking at one job per bucket, however many are queued.
type queue struct {
	buckets map[shape]*bucket
	size    int
	arrived int64
}

// A shape is what the jobs of a bucket have in common: cpus exactly, memory and estimate within a
// step of a ladder whose steps are an eighth of an octave (9 %) apart.
type shape struct {
	cpus         int
	memory, time int16
}

func (e *entry) shape() shape {
	return shape{e.job.CPUs, step(float64(e.job.MemoryMiB)), step(e.estimate.Seconds() * 1e3)}
}

func step(x float64) int16 {
	if x < 1 {
		return -1
	}
	return int16(8 * math.Log2(x))
}

// push queues a job that is new; it goes behind its equals.
func (q *queue) push(e *entry) {
	q.arrived++
	e.arrived = q.arrived
	q.restore(e)
}

// restore queues a job in the place that it had.
func (q *queue) restore(e *entry) {
	if q.buckets == nil {
		q.buckets = map[shape]*bucket{}
	}
	s := e.shape()
	b := q.buckets[s]
	if b == nil {
		b = &bucket{least: room{e.job.CPUs, e.job.MemoryMiB, e.estimate}}
		q.buckets[s] = b
	}
	b.least.memory = min(b.least.memory, e.job.MemoryMiB)
	b.least.left = min(b.least.left, e.estimate)
	heap.Push(b, e)
	q.size++
}

// remove takes e out. An empty bucket goes, so that shapes of the past cost nothing.
func (q *queue) remove(e *entry) {
	s := e.shape()
	b := q.buckets[s]
	heap.Remove(b, e.index)
	if b.Len() == 0 {
		delete(q.buckets, s)
	}
	q.size--
	e.overtaken = time.Time{}
	if e.reserved != nil {
		e.reserved.unkeep()
	}
}

// removeRun takes all jobs of a run out and returns them.
func (q *queue) removeRun(run corral.RunID) []*entry {
	var gone []*entry
	for _, b := range q.buckets {
		for _, e := range b.entries {
			if e.job.Run == run {
				gone = append(gone, e)
			}
		}
	}
	for _, e := range gone {
		q.remove(e)
	}
	return gone
}

// best returns the first job in the queue's order that fits r, or nil. Of those before it, passed is
// the first that does not fit r but would fit whole, the same worker with nothing on it.
func (q *queue) best(r, whole room) (found, passed *entry) {
	for _, b := range q.buckets {
		e := b.best(r)
		if e != nil && (found == nil || e.before(found)) {
			found = e
		}
		if e == b.entries[0] {
			continue
		}
		if p := b.best(whole); p != nil && p != e && (passed == nil || p.before(passed)) {
			passed = p
		}
	}
	if found == nil || passed != nil && !passed.before(found) {
		passed = nil
	}
	return found, passed
}

// A bucket is a heap of the queued jobs of one shape, first job first.
type bucket struct {
	entries []*entry
	least   room // no job of the bucket needs less than this
}

// best returns the first job that fits r, or nil. Only when r lies within the bucket's step of the
// ladder must it look at more than the first job.
func (b *bucket) best(r room) *entry {
	if b.least.cpus > r.cpus || b.least.memory > r.memory || b.least.left > r.left {
		return nil
	}
	if first := b.entries[0]; first.fits(r) {
		return first
	}
	var found *entry
	for _, e := range b.entries {
		if e.fits(r) && (found == nil || e.before(found)) {
			found = e
		}
	}
	return found
}

func (b *bucket) Len() int           { return len(b.entries) }
func (b *bucket) Less(i, j int) bool { return b.entries[i].before(b.entries[j]) }

func (b *bucket) Swap(i, j int) {
	b.entries[i], b.entries[j] = b.entries[j], b.entries[i]
	b.entries[i].index, b.entries[j].index = i, j
}

func (b *bucket) Push(x any) {
	e := x.(*entry)
	e.index = len(b.entries)
	b.entries = append(b.entries, e)
}

func (b *bucket) Pop() any {
	last := len(b.entries) - 1
	e := b.entries[last]
	b.entries[last] = nil
	b.entries = b.entries[:last]
	e.index = -1
	return e
}
