package baseline

import (
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// A Sight is a policy's view of the cluster: the ready tasks and its own pilots.
type Sight struct {
	Now     time.Duration
	Queued  int // cpus needed by tasks that are ready but not running
	Busy    int // cpus of running tasks
	CPUs    int // cpus of the present workers
	Each    int // cpus per pilot
	Pending int // pilots that are queued, or whose workers are not present yet
	Present int // pilots with workers
}

// Pilots returns the number of pilots that are queued or running.
func (s Sight) Pilots() int { return s.Pending + s.Present }

// pilots returns the number of pilots that have at least the given number of cpus in total.
func (s Sight) pilots(cpus int) int { return (max(0, cpus) + s.Each - 1) / s.Each }

// A Strategy decides, each time it is called, how many pilots to add or, if the number is negative, to remove. It may
// keep state, so a Strategy serves only a single run.
type Strategy interface {
	Decide(s Sight) (more int)
}

// A Setting holds the request of all policies: pilots of one shape, and never more than Most.
type Setting struct {
	Pilot plan.Pilot // Site, Queue, CPUs, MemoryMiB, GPUs, Walltime; one host
	Most  int        // maximum number of pilots that are queued or running at once

	Requests int // maximum number of requests in total; 0: no limit
}

// A Method is a policy with its parameters.
type Method struct {
	Name       string
	Parameters string        // empty: the defaults
	Every      time.Duration // interval between decisions
	Idle       time.Duration // idle time after which a pilot leaves; 0: never
	New        func() Strategy
}

// Control converts a method for the simulator. To remove pilots, it cancels queued ones first, starting with the most
// recent request; after these, it drains the most recent pilot, which finishes its running tasks.
func (m Method) Control(s Setting) sim.Control {
	policy, left := m.New(), s.Requests
	if left == 0 {
		left = math.MaxInt
	}
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
		more := min(policy.Decide(sight), s.Most-len(alive), left)
		left -= max(0, more)
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

// last returns the pilot to remove first.
func last(alive []sim.Held) int {
	for i := len(alive) - 1; i >= 0; i-- {
		if alive[i].Ready < 0 {
			return i
		}
	}
	return len(alive) - 1
}
