package montecarlo

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// longestStay stands for a stay without end: the simulator breaks off earlier.
const longestStay = 2 * 366 * 24 * time.Hour

// join adds the pilots that are there to a scenario. Each is at a site of its own, which has no price and no other
// pilot: it comes when its workers are ready, without overhead, and has the walltime that leaves its tasks as much time
// as it has. Tasks that it has already are played like those that wait, because which host has them matters little.
// Sites of m stay the first of the scenario.
func (m Model) join(s *sim.Scenario) {
	for i, q := range m.Present {
		if q.Host.CPUs < 1 || q.End <= q.Ready {
			continue // busy or leaving
		}
		name := fmt.Sprintf("present %d", i)
		s.Sites = append(s.Sites, sim.Site{
			Site: plan.Site{Name: name, Host: q.Host, Hosts: q.Hosts, Pilots: 1, Walltime: plan.Unbounded,
				Pace: q.Pace},
			Draw: func(plan.Shape, int) time.Duration { return q.Ready },
		})
		ask := sim.Ask{Pilot: plan.Pilot{Site: name, Hosts: q.Hosts, CPUs: q.Host.CPUs, MemoryMiB: q.Host.MemoryMiB,
			GPUs: q.Host.GPUs}}
		ask.Walltime = corral.Seconds(sim.WalltimeFor(min(q.End-q.Ready, longestStay)))
		if q.Keep < plan.Unbounded {
			ask.Idle = max(q.Keep, time.Millisecond)
		}
		s.Asks = append(s.Asks, ask)
	}
}

// asked reports whether a pilot of an outcome was asked for in it, unlike those that are there.
func (m Model) asked(h sim.Held) bool { return m.Site(h.Site, h.Queue) != nil }
