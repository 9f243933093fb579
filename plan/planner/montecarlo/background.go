package montecarlo

import (
	"time"

	"github.com/corral-pilot/corral/plan/sim/chance"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A Background is a workload of other users' jobs on a machine, with which pilots compete. Each outcome begins at a
// random instant of the workload, with the queue in its state without the pilots.
type Background struct{ states []*queue.Queue }

// The number of instants to draw from, and the part of the background that contains them: the machine fills up before
// this part, and enough jobs must arrive after this part for the duration of an outcome.
const (
	instants    = 200
	first, last = 0.1, 0.8
)

// NewBackground simulates jobs, which must be sorted by submission, on a machine.
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

// of returns the queue of a site in an outcome; different sites are at different instants.
func (b *Background) of(site string, seed uint64) *queue.Queue {
	return b.states[int(chance.Draw(seed, "background", site)*float64(len(b.states)))]
}
