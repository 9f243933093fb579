package algorithm

// Virtual reservations of a plan's later pilots. The staircase asks for each so early that it comes in time if it waits
// as long as the median of earlier pilots: half of them come later. Where the stage before must not wait for nothing,
// being there beforehand is worth idle cpus. How many is known beforehand, by the waits that have ended; whether it was
// worth it, the contest says.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/availability"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/validator"
)

// early makes the planner's plan, and has pilots that are wanted later than now asked for when the odds are best that
// they run by then (virtual.Plan). Each asks for as long as from its submission to its end, and is held idle until it
// has work: that is what the certainty costs. If room is looked for, one that the queue has room for at its time is
// asked for so that it gets that, and none earlier. Those that follow each other stay as they are.
func (q Question) early(ctx context.Context, room bool) (*plan.Plan, error) {
	made, err := q.staircase(ctx)
	if err != nil || !made.Feasible {
		return made, err
	}
	p := *made
	p.Pilots = slices.Clone(made.Pilots)
	e := hurry{Question: q, rooms: map[*plan.Site]*availability.Profile{}, last: map[*plan.Site]corral.Seconds{}}
	for i := range p.Pilots {
		if ctx.Err() != nil { // of thousands of pilots each takes milliseconds
			return nil, context.Cause(ctx)
		}
		x := &p.Pilots[i]
		s := q.Model.Site(x.Site, x.Queue)
		if x.Submit > 0 && !chained(p.Pilots, i) && !(room && e.wait(s, x)) {
			was := *x
			if e.advance(s, x); peak(p.Pilots, x.Site) > s.CPUs {
				*x = was // the site does not give so many cpus at once
			} else if x.Submit < was.Submit {
				e.early++
			}
		}
		e.take(s, x)
	}
	before := made.Cost
	if e.early+e.waiting == 0 {
		made.Reasons = append(made.Reasons, "no pilot is asked for earlier: none is wanted later than now, or no wait "+
			"that is known says when one would be in time")
		return made, nil
	}
	measure(q.Model.Problem, &p)
	if err := validator.Check(q.Model.Problem, &p); err != nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("pilots are not asked for earlier: %s", err))
		return made, nil
	}
	p.Assumed = plan.Assume(q.Model.Problem, &p, q.Model.Spread.String())
	p.Reasons = append(slices.Clone(p.Reasons), fmt.Sprintf("%d pilots are asked for early, to be there in time, and "+
		"%d wait for room at theirs: %s instead of %s", e.early, e.waiting, p.Cost.Brief(), before.Brief()))
	return &p, nil
}

// A hurry is pilots being advanced.
type hurry struct {
	Question
	rooms          map[*plan.Site]*availability.Profile // what is left of them
	last           map[*plan.Site]corral.Seconds        // when the latest is in line that waits for room
	early, waiting int                                  // pilots
}

// wait has a pilot wait for the place that its queue has at its start, if it has one.
func (e *hurry) wait(s *plan.Site, x *plan.Pilot) bool {
	if !e.fits(s, x) {
		return false
	}
	arrival := e.rooms[s].Arrival(time.Duration(x.Start), time.Duration(x.Walltime), x.HeldCPUs())
	x.Submit = max(corral.Seconds(arrival), e.last[s]) // pilots come in the order of their starts, as in plan.Line
	x.Early, e.last[s] = x.Submit < x.Start, x.Submit
	e.waiting++
	return true
}

// fits reports whether the queue has room for a pilot at its time.
func (e *hurry) fits(s *plan.Site, x *plan.Pilot) bool {
	if s.Room == nil {
		return false
	}
	if e.rooms[s] == nil {
		e.rooms[s] = s.Room.Clone()
	}
	return e.rooms[s].Least(time.Duration(x.Start), time.Duration(x.Start+x.Walltime)) >= x.HeldCPUs()
}

// take leaves of the room of a queue what a pilot does.
func (e *hurry) take(s *plan.Site, x *plan.Pilot) {
	if e.fits(s, x) {
		e.rooms[s].Take(time.Duration(x.Start), time.Duration(x.Start+x.Walltime), x.HeldCPUs())
	}
}

// advance has a pilot asked for earlier, if the odds of an earlier instant are better.
func (e *hurry) advance(s *plan.Site, x *plan.Pilot) {
	odds := e.odds(x.Site, x.Queue)
	if odds == nil {
		return
	}
	wanted := virtual.Wanted{Start: time.Duration(x.Start), Length: time.Duration(x.Walltime), Processors: x.HeldCPUs()}
	early, err := virtual.Plan(0, wanted, s.Walltime, odds)
	if err != nil || early.At >= time.Duration(x.Submit) {
		return
	}
	host := x.Host()
	if host.MemoryMiB == 0 {
		host.MemoryMiB = s.Host.MemoryMiB
	}
	wait := s.Wait(plan.Shape{Hosts: x.Hosts, Host: host, Walltime: early.Walltime})
	if early.At+wait > time.Duration(x.Start) {
		return // it is expected to be late all the same
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

// measure computes again what a plan's pilots hold and cost, after they were changed.
func measure(p plan.Problem, made *plan.Plan) {
	var held, billed, work time.Duration
	made.Cost.Money = 0
	for _, q := range made.Pilots {
		length, money := p.Site(q.Site, q.Queue).Tariff.Bill(q)
		cpus := q.HeldCPUs()
		held, billed = held+time.Duration(q.End-q.Start)*time.Duration(cpus), billed+length*time.Duration(cpus)
		made.Cost.Money = made.Cost.Money.Plus(money)
	}
	made.PeakCPUs = peak(made.Pilots, "")
	for _, at := range made.Schedule {
		if at.Pilot < len(made.Pilots) {
			work += at.Computes() * time.Duration(at.UsedCPUs())
		}
	}
	made.CoreHours, made.Billed = held.Hours(), billed.Hours()
	if held > 0 {
		made.Waste = 1 - float64(work)/float64(held)
	}
}

// peak is how many cpus pilots hold at once, at one site or, if that is empty, at all.
func peak(pilots []plan.Pilot, site string) (most int) {
	type change struct {
		at   corral.Seconds
		cpus int
	}
	var changes []change
	for _, q := range pilots {
		if n := q.HeldCPUs(); site == "" || q.Site == site {
			changes = append(changes, change{q.Start, n}, change{q.End, -n})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.cpus-b.cpus) })
	now := 0
	for _, c := range changes {
		now += c.cpus
		most = max(most, now)
	}
	return most
}
