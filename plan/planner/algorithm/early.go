package algorithm

// Virtual reservations for the later pilots of a plan. The staircase requests each pilot at a time that suits the
// median wait of earlier pilots, so half of the pilots are late. If the next stage must not be delayed, an early pilot
// is worth some idle cpus. Past waits determine how early a pilot is submitted; the contest shows whether this pays
// off.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/plan/validator"
)

// early returns the planner's plan with the submission of later pilots moved to the time with the best odds that they
// run when needed (virtual.Plan). Such a pilot requests the time from its submission to its planned end, and is held
// idle until it has work, which is the price of certainty. If room is set, a pilot that fits into the queue's free
// capacity at its planned time is queued for that capacity instead, and its start is not moved. Pilots that follow each
// other are not changed.
func (q Question) early(ctx context.Context, room bool) (*plan.Plan, error) {
	made, err := q.staircase(ctx)
	if err != nil || !made.Feasible {
		return made, err
	}
	p := *made
	p.Pilots = slices.Clone(made.Pilots)
	e := hurry{Question: q, rooms: map[*plan.Site]*slot.Profile{}, last: map[*plan.Site]corral.Seconds{}}
	for i := range p.Pilots {
		if ctx.Err() != nil { // plans have thousands of pilots, each of which takes milliseconds
			return nil, context.Cause(ctx)
		}
		x := &p.Pilots[i]
		s := q.Model.Site(x.Site, x.Queue)
		if x.Submit > q.Goal.NotBefore && !x.Throughout() && !chained(p.Pilots, i) && !(room && e.wait(s, x)) {
			was := *x
			if e.advance(s, x); plan.Peak(p.Pilots, x.Site) > s.CPUs ||
				q.Goal.MaxCPUs > 0 && plan.PeakBeside(p.Pilots, q.Model.Present) > q.Goal.MaxCPUs {
				*x = was // neither the site nor the goal allows more cpus at once
			} else if x.Submit < was.Submit {
				e.early++
			}
		}
		e.take(s, x)
	}
	before := made.Cost
	if e.early+e.waiting == 0 {
		made.Reasons = append(made.Reasons, "no pilot is requested earlier: all are needed now, or no known "+
			"wait shows when one would be in time")
		return made, nil
	}
	for i := range p.Pilots {
		p.Pilots[i].MinStay = q.Model.Cluster.MinStay(p.Pilots[i])
	}
	q.Model.Tally(&p)
	played, ok := &p, true
	if q.Model.Playable() {
		played, ok = q.Model.Play(&p)
	}
	if !ok {
		made.Reasons = append(made.Reasons, "pilots are not requested earlier: a task would be left undone")
		return made, nil
	}
	if err := validator.Check(q.Model.Problem, played); err != nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("pilots are not requested earlier: %s", err))
		return made, nil
	}
	c, reasons, why, ok := q.own(ctx, played, made.Confidence)
	if !ok {
		made.Reasons = append(made.Reasons, why)
		return made, nil
	}
	played.Assumed = plan.Assume(q.Model.Problem, played, q.Model.Spread.String())
	played.Confidence, played.Reasons = c, append(reasons, fmt.Sprintf("%d pilots are requested early, to be in time, "+
		"and %d are queued for room at their time: %s instead of %s", e.early, e.waiting, played.Cost.Brief(),
		before.Brief()))
	return played, nil
}

// own returns the confidence that a plan reaches in its own outcomes, and the reasons of the plan with it; was is the
// confidence for which the plan was made, before its pilots were requested early. If the plan is less safe than asked
// for and than it was, ok is false, and why is the reason.
func (q Question) own(ctx context.Context, pl *plan.Plan, was *plan.Confidence) (c *plan.Confidence, reasons []string,
	why string, ok bool) {
	reasons = slices.Clone(pl.Reasons)
	if was == nil {
		return nil, reasons, "", true
	}
	now := *was
	now.Reached = q.Model.Judge(ctx, q.Goal, q.Options.Seed)(pl, planner.Exact)
	if k := slices.Index(reasons, q.Model.Reason(q.Goal, was)); k >= 0 {
		reasons[k] = q.Model.Reason(q.Goal, &now)
	}
	why = fmt.Sprintf("pilots are not requested earlier: the plan would reach its goal in a share of only %.3f of "+
		"simulated outcomes", now.Reached)
	return &now, reasons, why, now.Reached >= min(was.Reached, was.Asked)
}

// A hurry is the state of moving pilots to earlier times.
type hurry struct {
	Question
	rooms          map[*plan.Site]*slot.Profile  // remaining capacity
	last           map[*plan.Site]corral.Seconds // latest submission of a pilot that is queued for room
	early, waiting int                           // numbers of pilots
}

// wait queues a pilot for the free place at its start, if its queue has such a place.
func (e *hurry) wait(s *plan.Site, x *plan.Pilot) bool {
	if !e.fits(s, x) {
		return false
	}
	arrival := e.rooms[s].Arrival(time.Duration(x.Start), time.Duration(x.Walltime), x.HeldCPUs())
	// Pilots are submitted in the order of their starts, as in plan.Line.
	x.Submit = max(corral.Seconds(arrival), e.last[s], e.Goal.NotBefore)
	x.Early, e.last[s] = x.Submit < x.Start, x.Submit
	e.waiting++
	return true
}

// fits reports whether the queue has room for a pilot at the pilot's planned time.
func (e *hurry) fits(s *plan.Site, x *plan.Pilot) bool {
	if s.Room == nil {
		return false
	}
	if e.rooms[s] == nil {
		e.rooms[s] = s.Room.Clone()
	}
	return e.rooms[s].Least(time.Duration(x.Start), time.Duration(x.Start+x.Walltime)) >= x.HeldCPUs()
}

// take removes a pilot's resources from the room of its queue.
func (e *hurry) take(s *plan.Site, x *plan.Pilot) {
	if e.fits(s, x) {
		e.rooms[s].Take(time.Duration(x.Start), time.Duration(x.Start+x.Walltime), x.HeldCPUs())
	}
}

// advance moves the submission of a pilot to an earlier time if the odds are better.
func (e *hurry) advance(s *plan.Site, x *plan.Pilot) {
	odds := e.odds(x.Site, x.Queue)
	if odds == nil {
		return
	}
	wanted := virtual.Wanted{Start: time.Duration(x.Start), Length: time.Duration(x.Walltime), Processors: x.HeldCPUs()}
	early, err := virtual.Plan(time.Duration(e.Goal.NotBefore), wanted, s.Walltime, odds)
	if err != nil || early.At >= time.Duration(x.Submit) {
		return
	}
	host := x.Host()
	if host.MemoryMiB == 0 {
		host.MemoryMiB = s.Host.MemoryMiB
	}
	wait := s.Wait(plan.Shape{Hosts: x.Hosts, Host: host, Walltime: early.Walltime})
	if early.At+wait > time.Duration(x.Start) {
		return // the pilot is expected to be late anyway
	}
	x.Submit, x.Start = corral.Seconds(early.At), corral.Seconds(early.At+wait)
	x.Walltime = corral.Seconds(early.Walltime)
	x.Early = true
}

func (e *hurry) odds(site, queue string) virtual.Predictor {
	if e.Odds == nil {
		return nil
	}
	return e.Odds(site, queue)
}
