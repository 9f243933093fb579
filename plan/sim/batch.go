package sim

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A batch is the batch system of a site whose waits are not random but follow from its queue (plan/sim/queue): pilots
// are jobs that compete with the jobs of other users. The queue is advanced only when it is used, and schedules events
// of the simulation only while a pilot waits; other jobs are not observed individually.
type batch struct {
	s       *site
	queue   *queue.Queue
	origin  time.Duration // the queue's time at the beginning of the simulation
	waiting int           // number of waiting pilots
	wake    time.Duration // time of the next pass; negative: not scheduled
}

// ours is the number of the user to whom pilots belong. It differs from the users in traces, which are numbered from 1,
// or −1 if unknown.
const ours = -2

// newBatch returns the batch system of a site with a copy of the given queue. A maintenance period becomes a
// reservation of all processors that will be free during it.
func newBatch(s *site, of *queue.Queue) *batch {
	b := &batch{s: s, queue: of.Clone(), origin: of.Now(), wake: -1}
	for _, c := range s.Closed {
		from, to := b.origin+max(0, c.From), b.origin+c.To
		if to > from {
			b.queue.Reserve(from, to, b.queue.Free().Least(from, to))
		}
	}
	return b
}

// submit adds a pilot to the queue. It returns the reason if the pilot is refused, and "" if it is accepted.
func (b *batch) submit(id corral.JobID, shape plan.Shape) (refused string) {
	b.reach()
	refused = b.queue.Submit(queue.Job{ID: int(id), User: ours, Processors: shape.Hosts * shape.Host.CPUs,
		Requested: shape.Walltime, Runtime: queue.Open})
	if refused == "" {
		b.waiting++
		b.look()
	}
	return refused
}

// finish removes a pilot from the queue, or frees its processors.
func (b *batch) finish(p *pilot) {
	b.reach()
	if !p.admitted {
		b.waiting--
	}
	b.queue.Finish(int(p.job.ID))
	b.look()
}

// reach advances the queue to just before the current instant, so that the queue's pass follows all submissions and
// ends of this instant.
func (b *batch) reach() { b.queue.Reach(b.origin+b.s.now, b.started) }

// started is called when a job of the queue starts; if the job is a pilot, started begins the pilot.
func (b *batch) started(j queue.Job, _ time.Duration) {
	if p := b.s.pilots[corral.JobID(j.ID)]; j.User == ours && p != nil {
		b.waiting--
		p.admitted = true
		b.s.after(0, p.begin)
	}
}

// look schedules the next pass of the queue if a pilot is waiting in it.
func (b *batch) look() {
	next, ok := b.queue.Next()
	if !ok || b.waiting == 0 {
		return
	}
	at := wholeUp(max(b.s.now, next-b.origin))
	if b.wake >= b.s.now && b.wake <= at {
		return // an earlier pass is scheduled, and will schedule this one
	}
	b.wake = at
	b.s.at(at, func() {
		if b.wake == at {
			b.s.after(0, b.pass) // after the other events of this instant
		}
	})
}

// pass performs the queue's events of the current instant.
func (b *batch) pass() {
	b.wake = -1
	b.queue.Advance(b.origin+b.s.now, b.started)
	b.look()
}
