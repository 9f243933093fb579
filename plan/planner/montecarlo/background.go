package montecarlo

import (
	"time"

	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A Background is other people's jobs on a machine, among which pilots wait. Each outcome begins at an instant of it
// that is drawn from some, at which the queue is as it would be without the pilots.
type Background struct{ states []*queue.Queue }

// How many instants there are from which one is drawn, and which part of the background they lie in: before it the
// machine fills up, and behind it jobs have to go on coming for as long as an outcome takes.
const (
	instants    = 200
	first, last = 0.1, 0.8
)

// NewBackground plays jobs, in the order of their submission, on a machine.
func NewBackground(m queue.Machine, jobs []queue.Job) *Background {
	var span time.Duration
	if len(jobs) > 0 {
		span = jobs[len(jobs)-1].Submit
	}
	at := make([]time.Duration, instants)
	for i := range at {
		at[i] = time.Duration(float64(span) * (first + (last-first)*float64(i)/instants))
	}
	return &Background{queue.States(m, jobs, at)}
}

// of is the queue that an outcome finds at a site: two sites are at different instants.
func (b *Background) of(site string, seed uint64) *queue.Queue {
	return b.states[int(chance.Draw(seed, "background", site)*float64(len(b.states)))]
}
