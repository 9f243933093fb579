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
	tasks := x.run.x.Counts()
	r := pacing.State{Graph: x.Work.Graph, Hop: x.Cluster.Hop, Now: now,
		Stuck:    tasks.Running == 0 && tasks.Ready > 0 && !x.coming(),
		Progress: func(i int) execution.Progress { return execution.ProgressAt(x.run.x, i) },
		Estimate: func(i int) time.Duration { return x.Work.Tasks[i].Estimate }}
	x.paced = slices.DeleteFunc(x.paced, func(p *paced) bool {
		soon, postponed := !p.at.After(now.Add(time.Millisecond)), p.at.After(p.pilot.Planned)
		if !soon && !postponed {
			return false
		}
		at := r.At(p.pilot, p.at).Truncate(time.Millisecond)
		if !at.Equal(p.at) {
			p.site.apply(reconcile.Retime{Glidein: p.glidein, At: at, Reason: pacing.Reason(p.at, at)})
			p.at = at
			x.at(x.since(at)-time.Millisecond, x.pace)
		}
		return !at.After(now.Add(time.Millisecond))
	})
	var next time.Duration
	for _, p := range x.paced {
		if p.at.After(p.pilot.Planned) {
			next = max(pacing.Hold, p.at.Sub(now)/pollPart)
			break
		}
	}
	if !x.polling && next > 0 {
		x.polling = true
		x.after(next, func() { x.polling = false; x.pace() })
	}
}

// pollPart is the part of the time for which a pilot is still postponed after which that is checked again.
const pollPart = 8

// coming reports whether a pilot has been submitted whose workers are not there yet.
func (x *simulation) coming() bool {
	return slices.ContainsFunc(x.trace.Pilots, func(h Held) bool { return h.Ready < 0 && h.End < 0 })
}
