package sim

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/pacing"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

// paced is a pilot whose submission depends on the progress of the run.
type paced struct {
	site    *site
	glidein corral.GlideinID
	pilot   pacing.Later
	at      time.Time // when it will be submitted
}

// pace postpones the pilots that are about to be submitted and that the run does not need yet, and submits postponed
// ones that it needs. Production does so every pacing.Period; here postponed
// pilots are checked less often.
func (x *simulation) pace() {
	if x.run.ending != "" {
		return
	}
	now := x.time()
	r := pacing.State{Graph: x.Work.Graph, Hop: x.Cluster.Hop, Now: now, Stuck: x.stuck(),
		Progress: func(i int) execution.Progress { return execution.ProgressAt(x.run.x, i) },
		Estimate: func(i int) time.Duration { return x.Work.Tasks[i].Estimate }}
	x.paced = slices.DeleteFunc(x.paced, func(p *paced) bool {
		soon, postponed := !p.at.After(now.Add(time.Millisecond)), p.at.After(p.pilot.Planned)
		if !soon && !postponed {
			return false
		}
		at := r.At(p.pilot, p.at).Truncate(time.Millisecond)
		if at.Before(p.at) || at.After(p.at) && soon {
			p.site.apply(reconcile.Retime{Glidein: p.glidein, At: at, Reason: pacing.Reason(p.at, at)})
			p.at = at
			x.at(x.since(at)-time.Millisecond, x.pace)
		}
		return !p.at.After(now.Add(time.Millisecond))
	})
	next := Never
	for _, p := range x.paced {
		switch {
		case !p.at.After(p.pilot.Planned):
		case x.stuckSince > 0:
			next = pacing.Hold
		default:
			next = min(next, max(pacing.Hold, p.at.Sub(now)/pollPart))
		}
	}
	if !x.polling && next < Never {
		x.polling = true
		x.after(next, func() { x.polling = false; x.pace() })
	}
}

// stuck reports whether tasks have been ready for a while, at all checks, although none ran and no pilot came.
func (x *simulation) stuck() bool {
	tasks := x.run.x.Counts()
	if tasks.Running > 0 || tasks.Ready == 0 || x.coming() {
		x.stuckSince = 0
		return false
	}
	if x.stuckSince == 0 {
		x.stuckSince = max(1, x.now)
	}
	return x.now-x.stuckSince >= pacing.Patience
}

// pollPart is the part of the time for which a pilot is still postponed after which that is checked again.
const pollPart = 8

// coming reports whether a pilot has been submitted whose workers are not there yet.
func (x *simulation) coming() bool {
	return slices.ContainsFunc(x.trace.Pilots, func(h Held) bool { return h.Ready < 0 && h.End < 0 })
}
