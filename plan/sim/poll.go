package sim

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A glance is the part of a View that changes with each event that a policy can react to, except the time.
type glance struct {
	tasks               corral.RunTasks
	queued, cpus        int
	pilots, ready, over int
}

func (x *simulation) glance() glance {
	g := glance{tasks: x.run.x.Counts(), queued: x.cluster.wanted, cpus: len(x.cluster.members),
		pilots: len(x.trace.Pilots)}
	for _, p := range x.trace.Pilots {
		if p.Ready >= 0 {
			g.ready++
		}
		if p.End >= 0 {
			g.over++
		}
	}
	return g
}

// patience is the ratio of the time without a change to the interval between calls of a policy, if the scenario is
// Patient.
const patience = 32

// A polling is the state of the calls of a policy.
type polling struct {
	due     time.Duration // the next call
	changed time.Duration // last change that the policy could see
	seen    glance        // at the last call
}

// control calls the policy, and schedules the next call.
func (x *simulation) control() {
	if x.Control == nil || x.run.ending != "" {
		return
	}
	asks := x.Control(x.now, x.view())
	for _, a := range asks {
		x.ask(a)
	}
	wait := x.Every
	if x.Patient {
		if seen := x.glance(); seen != x.policy.seen || len(asks) > 0 {
			x.policy.seen, x.policy.changed = seen, x.now
		}
		wait = max(wait, ((x.now - x.policy.changed) / patience).Truncate(x.Every))
	}
	x.poll(x.now + wait)
}

// poll schedules the next call of the policy.
func (x *simulation) poll(at time.Duration) {
	at = wholeUp(at)
	x.policy.due = at
	x.at(at, func() {
		if x.policy.due == at {
			x.policy.due = Never
			x.control()
		}
	})
}

// hasten moves the next call of a policy that is called seldom, because nothing changed, to the next multiple of its
// interval, if something has changed.
func (x *simulation) hasten() {
	if !x.Patient || x.policy.due-x.now <= x.Every || x.glance() == x.policy.seen {
		return
	}
	x.poll(x.gridAfter(x.Every))
}
