package algorithm

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/validator"
)

// Hedge asks for each pilot of a plan at another site, too, where one like it is expected soonest: corrald withdraws
// the one whose workers are later. The plan's times and its schedule stay those of the first, and what it says of its
// end is thereby cautious. It costs what the second one holds until it is withdrawn: at most from its start until its
// workers would be there, which is what the plan counts.
//
// A pilot that takes the place of another, or whose place is taken, is not hedged: it is at its site for that. Where no
// other site has its hosts, or gives so many cpus, there is no second one either. The plan says how many there are.
func Hedge(p plan.Problem, made *plan.Plan) *plan.Plan {
	if !made.Feasible {
		return made
	}
	h := *made
	h.Pilots, h.Schedule = slices.Clone(made.Pilots), slices.Clone(made.Schedule)
	before := h.Cost
	for k := range made.Pilots {
		if chained(made.Pilots, k) {
			continue
		}
		if q, ok := twin(p, h.Pilots, made.Pilots[k]); ok {
			q.Hedges = &k
			h.Pilots = append(h.Pilots, q)
		}
	}
	twins := len(h.Pilots) - len(made.Pilots)
	for i := range h.Schedule {
		if at := &h.Schedule[i]; at.Pilot >= len(made.Pilots) {
			at.Pilot += twins // one that is present: they are numbered after the plan's
		}
	}
	measure(p, &h)
	if err := validator.Check(p, &h); err != nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("its pilots are not hedged: %s", err))
		return made
	}
	if made.Assumed != nil {
		h.Assumed = plan.Assume(p, &h, made.Assumed.Spread)
	}
	h.Reasons = append(slices.Clone(made.Reasons), fmt.Sprintf("of %d pilots %d are asked for at another site, too, "+
		"and the later one is withdrawn: %s instead of %s at most", len(made.Pilots), twins, h.Cost.Brief(),
		before.Brief()))
	return &h
}

// chained reports whether a pilot takes another's place, or another takes its.
func chained(pilots []plan.Pilot, k int) bool {
	return pilots[k].Follows != nil || slices.ContainsFunc(pilots, func(q plan.Pilot) bool {
		return q.Follows != nil && *q.Follows == k
	})
}

// twin is a pilot like another at the site, of the others that give so many cpus beside some pilots, where its workers
// are expected first. It is asked for at the same time.
func twin(p plan.Problem, beside []plan.Pilot, of plan.Pilot) (best plan.Pilot, ok bool) {
	for i := range p.Sites {
		s := &p.Sites[i]
		host := of.Host()
		if s.Name == of.Site || of.Hosts > s.Hosts || !host.FitIn(s.Host) || time.Duration(of.Walltime) > s.Walltime {
			continue
		}
		if host.MemoryMiB == 0 {
			host.MemoryMiB = s.Host.MemoryMiB
		}
		q := of
		q.Site, q.Queue, q.Early = s.Name, s.Queue, of.Submit < of.Ready
		wait := s.Wait(plan.Shape{Hosts: of.Hosts, Host: host, Walltime: time.Duration(of.Walltime)})
		if s.Room != nil {
			if at, fits := s.Room.Fit(time.Duration(of.Submit), time.Duration(of.Walltime), of.HeldCPUs()); fits {
				wait = at - time.Duration(of.Submit)
			}
		}
		q.Start = q.Submit + corral.Seconds(wait)
		q.Ready = q.Start + corral.Seconds(s.Overhead)
		q.End = q.Ready
		held := plan.Span{From: time.Duration(q.Start), To: time.Duration(q.Start + q.Walltime)}
		if slices.ContainsFunc(s.Closed, held.Overlaps) ||
			peak(append(slices.Clone(beside), q), s.Name) > s.CPUs {
			continue
		}
		if !ok || q.Ready < best.Ready {
			best, ok = q, true
		}
	}
	return best, ok
}
