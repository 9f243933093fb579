package baseline

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// A Sight is what a policy sees of the cluster: tasks that are ready, and its own pilots.
type Sight struct {
	Now     time.Duration
	Queued  int // cpus that tasks want which are ready and do not run
	Busy    int // cpus of tasks that run
	CPUs    int // of the workers that are there
	Each    int // cpus of a pilot
	Pending int // pilots that wait, or whose workers are not there yet
	Present int // pilots with workers
}

// Pilots is how many pilots wait or run.
func (s Sight) Pilots() int { return s.Pending + s.Present }

// pilots returns how many pilots have so many cpus together, at least.
func (s Sight) pilots(cpus int) int { return (max(0, cpus) + s.Each - 1) / s.Each }

// A Policy says, each time it looks, by how many pilots there should be more, or with a negative number fewer. It may
// remember what it saw: one Policy serves one run.
type Policy interface {
	Decide(s Sight) (more int)
}

// A Setting is what all policies ask for: pilots of one shape, of which there are never more than Most.
type Setting struct {
	Pilot plan.Pilot // Site, Queue, CPUs, MemoryMiB, GPUs, Walltime; one host
	Most  int        // pilots that wait or run at once
}

// A Method is a policy with its parameters.
type Method struct {
	Name       string
	Parameters string        // empty: its defaults
	Every      time.Duration // how often it looks
	Idle       time.Duration // after which a pilot without work leaves; 0: never
	New        func() Policy
}

// Control returns a method as the simulator calls it. Of pilots that are too many those that still wait go first, the
// last one asked for before the others; of the others the last one is drained: it finishes what it runs.
func (m Method) Control(s Setting) sim.Control {
	policy := m.New()
	leaving := map[corral.GlideinID]bool{}
	return func(now time.Duration, v sim.View) (asks []sim.Ask) {
		sight := Sight{Now: now, Queued: max(v.QueuedCPUs, v.Tasks.Ready), Busy: v.BusyCPUs, CPUs: v.CPUs,
			Each: s.Pilot.CPUs}
		var alive []sim.Held
		for _, h := range v.Pilots {
			if h.End >= 0 || leaving[h.Glidein] {
				continue
			}
			if alive = append(alive, h); h.Ready < 0 {
				sight.Pending++
			} else {
				sight.Present++
			}
		}
		more := min(policy.Decide(sight), s.Most-len(alive))
		for range more {
			asks = append(asks, sim.Ask{Pilot: s.Pilot, Idle: m.Idle})
		}
		for range min(-more, len(alive)) {
			at := last(alive)
			leaving[alive[at].Glidein] = true
			asks = append(asks, sim.Ask{Release: corral.AskDrain, Glidein: alive[at].Glidein})
			alive = append(alive[:at], alive[at+1:]...)
		}
		return asks
	}
}

// last returns which pilot is let go first.
func last(alive []sim.Held) int {
	for i := len(alive) - 1; i >= 0; i-- {
		if alive[i].Ready < 0 {
			return i
		}
	}
	return len(alive) - 1
}
