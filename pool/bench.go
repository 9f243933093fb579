package pool

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// The terms of the matching.
const (
	prefetchWork  = 150 * time.Millisecond // per cpu: work that may wait at a worker
	prefetchMost  = 64                     // per cpu: jobs that may wait at a worker
	recallAfter   = time.Second            // a job that has waited at a worker for so long is asked back
	overtakenLong = 10 * time.Second       // after it a worker is kept free for the overtaken job
)

// A bench is a worker as the matching sees it: what it has, what is believed to run on it, and what
// waits there. The worker starts what waits strictly in order, as soon as it fits, and so does the
// bench whenever a job is released: the two agree without a message.
//
// The rule of the matching is first fit in the queue's order. A job that does not fit where jobs behind
// it do is overtaken, so that a big job does not leave a worker idle; when that has gone on for
// overtakenLong, the next worker that could hold it is kept free for it and takes nothing else.
type bench struct {
	cpus, memory int
	endsAt       time.Time // when the worker stops running tasks
	usedCPUs     int
	usedMemory   int
	running      []*entry
	waiting      []*entry
	keptFor      *entry
}

// left is what an estimate may be at most for a job that starts now.
func (b *bench) left(now time.Time) time.Duration { return b.endsAt.Sub(now) - execution.StartMargin }

// whole is the room of the worker with nothing on it.
func (b *bench) whole(now time.Time) room { return room{b.cpus, b.memory, b.left(now)} }

// free is its room for a job that starts at once.
func (b *bench) free(now time.Time) room {
	return room{b.cpus - b.usedCPUs, b.memory - b.usedMemory, b.left(now)}
}

// soon is its room for a job that waits there: without what jobs take that will not end soon.
func (b *bench) soon(now time.Time) room {
	r := b.whole(now)
	r.left -= prefetchWork
	for _, e := range b.running {
		if e.expected > prefetchWork || now.Sub(e.begun) > 2*prefetchWork {
			r.cpus -= e.job.CPUs
			r.memory -= e.job.MemoryMiB
		}
	}
	return r
}

// fill takes jobs from q for the worker and returns them in the order in which they must be sent.
// share is how many jobs per cpu may wait at a worker without keeping others idle, and expect says
// how long a job will probably take.
func (b *bench) fill(q *queue, now time.Time, share int, expect func(*entry) time.Duration) []*entry {
	var taken []*entry
	take := func(e *entry) {
		q.remove(e)
		e.expected = expect(e)
		b.add(e, now)
		taken = append(taken, e)
	}
	for len(b.waiting) == 0 && q.size > 0 {
		e := b.next(q, now)
		if e == nil {
			break
		}
		take(e)
	}
	if b.keptFor != nil || q.size == 0 {
		return taken
	}
	r := b.soon(now)
	most := min(prefetchMost, share) * r.cpus
	budget := prefetchWork * time.Duration(r.cpus)
	work := b.waitingWork()
	if len(b.waiting) > most/2 || work > budget/2 {
		return taken // worth no message yet
	}
	for len(b.waiting) < most {
		e, _ := q.best(r, r)
		if e == nil || work+expect(e) > budget {
			break // what is first in the queue may not be overtaken by what is short
		}
		work += expect(e)
		take(e)
	}
	return taken
}

// next returns the job that the worker should start now, still queued, or nil.
func (b *bench) next(q *queue, now time.Time) *entry {
	free, whole := b.free(now), b.whole(now)
	if e := b.keptFor; e != nil {
		switch {
		case e.fits(free):
			return e
		case e.fits(whole):
			return nil
		}
		b.unkeep()
	}
	if free.cpus <= 0 {
		return nil
	}
	found, passed := q.best(free, whole)
	switch {
	case passed == nil:
	case passed.overtaken.IsZero():
		passed.overtaken = now
	case passed.reserved == nil && now.Sub(passed.overtaken) >= overtakenLong:
		passed.reserved, b.keptFor = b, passed
		return nil
	}
	return found
}

func (b *bench) waitingWork() time.Duration {
	var sum time.Duration
	for _, e := range b.waiting {
		sum += e.expected
	}
	return sum
}

// add puts e on the bench: it starts if it fits and nothing waits before it.
func (b *bench) add(e *entry, now time.Time) {
	e.begun = now
	b.waiting = append(b.waiting, e)
	b.advance(now)
}

// release takes e off the bench, if it is there, and starts what waits.
func (b *bench) release(e *entry, now time.Time) {
	if i := slices.Index(b.running, e); i >= 0 {
		b.running = slices.Delete(b.running, i, i+1)
		b.usedCPUs -= e.job.CPUs
		b.usedMemory -= e.job.MemoryMiB
	} else if i := slices.Index(b.waiting, e); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.advance(now)
}

func (b *bench) advance(now time.Time) {
	for len(b.waiting) > 0 {
		e := b.waiting[0]
		if b.usedCPUs+e.job.CPUs > b.cpus || b.usedMemory+e.job.MemoryMiB > b.memory {
			return
		}
		b.waiting = slices.Delete(b.waiting, 0, 1)
		b.run(e, now)
	}
}

// run books e as running, whether or not it fits: a worker may hold what it took under other terms.
func (b *bench) run(e *entry, now time.Time) {
	e.begun = now
	b.running = append(b.running, e)
	b.usedCPUs += e.job.CPUs
	b.usedMemory += e.job.MemoryMiB
}

// clear takes everything off the bench.
func (b *bench) clear() {
	b.running, b.waiting, b.usedCPUs, b.usedMemory = nil, nil, 0, 0
	b.unkeep()
}

// unkeep gives up keeping the worker free for a job: another may take it.
func (b *bench) unkeep() {
	if b.keptFor != nil {
		b.keptFor.reserved, b.keptFor = nil, nil
	}
}

// A pace is how a run's jobs compare with their estimates: the ratio of sums that forget slowly, so
// that one long job outweighs many short ones.
type pace struct{ actual, estimated float64 }

func (p *pace) observe(actual, estimated time.Duration) {
	const keep = 1 - 1.0/64
	p.actual = keep*p.actual + max(0, actual.Seconds())
	p.estimated = keep*p.estimated + estimated.Seconds()
}

// expect corrects an estimate by what was measured so far.
func (p *pace) expect(estimate time.Duration) time.Duration {
	if p.estimated <= 0 {
		return estimate
	}
	return time.Duration(float64(estimate) * p.actual / p.estimated)
}
