package sim

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A batch is the batch system of a site whose waits are not drawn but follow from its queue (plan/sim/queue): pilots
// are jobs there among those of others. It is brought to the present only when something is asked of it, and wakes the
// simulation only while a pilot waits: what others do then is not looked at one by one.
type batch struct {
	s       *site
	queue   *queue.Queue
	origin  time.Duration // the instant of the queue at which the simulation begins
	waiting int           // pilots that wait
	wake    time.Duration // when it is looked at next; negative: not planned
}

// ours is the user of pilots: none of a trace, whose users are numbered from 1, or not known, which is -1.
const ours = -2

// newBatch returns the batch system of a site with this queue, which stays as it is. Maintenances are reservations of
// what will be free then.
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

// submit puts a pilot into the queue, and says why it is refused; empty: it is not.
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

// finish takes a pilot out of the queue, or frees its processors.
func (b *batch) finish(p *pilot) {
	b.reach()
	if !p.admitted {
		b.waiting--
	}
	b.queue.Finish(int(p.job.ID))
	b.look()
}

// reach brings the queue to the present, but for what happens now: all that is submitted or ends at an instant is there
// for the queue's pass then.
func (b *batch) reach() { b.queue.Reach(b.origin+b.s.now, b.started) }

// started starts the pilots whose turn has come.
func (b *batch) started(j queue.Job, _ time.Duration) {
	if p := b.s.pilots[corral.JobID(j.ID)]; j.User == ours && p != nil {
		b.waiting--
		p.admitted = true
		b.s.after(0, p.begin)
	}
}

// look plans the next look at the queue, if a pilot waits there.
func (b *batch) look() {
	next, ok := b.queue.Next()
	if !ok || b.waiting == 0 {
		return
	}
	at := wholeUp(max(b.s.now, next-b.origin))
	if b.wake >= b.s.now && b.wake <= at {
		return // something happens before, after which it is looked again
	}
	b.wake = at
	b.s.at(at, func() {
		if b.wake == at {
			b.s.after(0, b.pass) // behind what else happens now
		}
	})
}

// pass has happen at the site what does now.
func (b *batch) pass() {
	b.wake = -1
	b.queue.Advance(b.origin+b.s.now, b.started)
	b.look()
}
