package montecarlo

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// longestStay replaces an unlimited stay: the simulator aborts before such a stay ends.
const longestStay = 2 * 366 * 24 * time.Hour

// join adds the present pilots to a scenario. Each has a site of its own, without a price and without other pilots: it
// starts when its workers are ready, without overhead, and its walltime leaves its tasks exactly the time until its
// end. Running tasks stay on their hosts for their remaining time, even beyond the pilot's end: they may be late, and a
// pilot without time left only waits for them. The sites of m remain the first ones of the scenario.
func (m Model) join(s *sim.Scenario) {
	for _, i := range m.useful() {
		q := m.Present[i]
		name := fmt.Sprintf("present %d", i)
		s.Sites = append(s.Sites, sim.Site{
			Site: plan.Site{Name: name, Host: q.Host, Hosts: q.Hosts, Pilots: 1, Walltime: plan.Unbounded,
				Pace: q.Pace},
			Draw: func(plan.Shape, int) time.Duration { return q.Ready },
		})
		ask := sim.Ask{Pilot: plan.Pilot{Site: name,
			Shape: corral.Shape{Hosts: q.Hosts, CPUs: q.Host.CPUs, MemoryMiB: q.Host.MemoryMiB, GPUs: q.Host.GPUs}}}
		stay := max(time.Second, min(q.End-q.Ready, longestStay))
		ask.Past = &sim.Past{Running: q.Running, Until: q.End - q.Ready, Idle: q.Idle, Speed: q.Told}
		for _, r := range q.Running {
			stay = max(stay, q.Takes(m.Work.Tasks[r.Task]))
		}
		ask.Walltime = corral.Seconds(sim.WalltimeFor(stay))
		if q.Keep < plan.Unbounded {
			ask.Idle = max(q.Keep, time.Millisecond)
		}
		s.Asks = append(s.Asks, ask)
	}
}

// useful returns the present pilots that run tasks or can take some, by index.
func (m Model) useful() (all []int) {
	for i, q := range m.Present {
		if len(q.Running) > 0 || q.Host.CPUs > 0 && q.End > q.Ready {
			all = append(all, i)
		}
	}
	return all
}

// asked reports whether a pilot was requested in the outcome, as opposed to one that was already present.
func (m Model) asked(h sim.Held) bool { return m.Site(h.Site, h.Queue) != nil }
