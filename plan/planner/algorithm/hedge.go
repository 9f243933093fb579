package algorithm

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/plan/validator"
)

// Hedge adds a second pilot for each pilot of a plan, at the other site where its workers are expected first. corrald
// withdraws the pilot of each pair whose workers are later. The plan's times and schedule remain those of the first
// pilot. The second pilot is submitted so that it is expected in time for the work of the first pilot, but not earlier;
// the pilot that starts first stays.
//
// The expected additional cost is that of the second pilot until it is withdrawn, which is the cost of its start-up. If
// the second pilot does the work instead, its own price applies. The reasons report the maximum total cost, which must
// be within the goal's budget and the rest of each site's allocation; otherwise nothing is hedged.
//
// A pilot that replaces another, or is replaced, is not hedged, because it depends on its site. A pilot is also not
// hedged if no other site has such hosts or enough cpus, or if the second pilot would be later than the first by more
// than it can save: the difference between the wait that 90 % of the first pilots do not exceed and the median. The
// plan reports the number of hedged pilots.
func (q Question) Hedge(made *plan.Plan) *plan.Plan {
	p := q.Model.Problem
	if q.Queued != nil {
		p.Sites = q.Queued
	}
	return Hedge(p, made)
}

// Hedge is like Question.Hedge, for a problem whose sites have the rooms of their queues, where known.
func Hedge(p plan.Problem, made *plan.Plan) *plan.Plan {
	if !made.Feasible {
		return made
	}
	h := newHedging(p, made)
	for k := range made.Pilots {
		if !chained(made.Pilots, k) {
			h.twin(k)
		}
	}
	hedged, twins := h.plan(), len(h.seconds)
	if twins == 0 {
		made.Reasons = append(made.Reasons, h.none())
		return made
	}
	if err := validator.Check(p, hedged); err != nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("its pilots are not hedged: %s", err))
		return made
	}
	most := cost.Amount{Money: h.most(), Unit: made.Cost.Unit}
	if budget := made.Goal.Budget; budget != nil && most.Money > budget.Money {
		made.Reasons = append(made.Reasons, fmt.Sprintf("its pilots are not hedged: if the second ones do the work, "+
			"it may cost %s, but the budget is %s", most.Brief(), budget.Brief()))
		return made
	}
	hedged.Reasons = append(slices.Clone(made.Reasons), fmt.Sprintf("%[2]d of %[1]d pilots are requested at another "+
		"site, too, and the later one is withdrawn: %[3]s is expected instead of %[4]s, and at most %[5]s",
		len(made.Pilots), twins, hedged.Cost.Brief(), made.Cost.Brief(), most.Brief()))
	return hedged
}

// A hedging is the state of adding second pilots to a plan.
type hedging struct {
	plan.Problem
	made    *plan.Plan
	held    []plan.Pilot // all pilots, each with the times that it needs to do the work
	seconds []plan.Pilot
	rooms   map[*plan.Site]*slot.Profile // remaining capacity
	late    string                       // why a second pilot would be too late; "": none would
}

func newHedging(p plan.Problem, made *plan.Plan) *hedging {
	h := &hedging{p, made, slices.Clone(made.Pilots), nil, map[*plan.Site]*slot.Profile{}, ""}
	for i := range p.Sites {
		s := &h.Sites[i]
		if s.Room == nil {
			continue
		}
		h.rooms[s] = s.Room.Clone()
		for _, q := range made.Pilots {
			if q.Site == s.Name && q.Queue == s.Queue {
				h.take(s, q)
			}
		}
	}
	return h
}

// take removes a pilot from the room of its queue if it fits.
func (h *hedging) take(s *plan.Site, q plan.Pilot) {
	from, to := time.Duration(q.Start), time.Duration(q.Start+q.Walltime)
	if room := h.rooms[s]; room != nil && room.Least(from, to) >= q.HeldCPUs() {
		room.Take(from, to, q.HeldCPUs())
	}
}

// plan returns the plan with the second pilots appended.
func (h *hedging) plan() *plan.Plan {
	p := *h.made
	p.Pilots, p.Schedule = append(slices.Clone(p.Pilots), h.seconds...), slices.Clone(p.Schedule)
	for i := range p.Schedule {
		if at := &p.Schedule[i]; at.Pilot >= len(h.made.Pilots) {
			at.Pilot += len(h.seconds) // a present pilot; these are numbered after the plan's own
		}
	}
	h.Tally(&p)
	if p.Assumed != nil {
		p.Assumed = plan.Assume(h.Problem, &p, p.Assumed.Spread)
	}
	return &p
}

// most returns the maximum total cost: in each pair the more expensive pilot works, and the other is withdrawn as late
// as possible.
func (h *hedging) most() (sum cost.Money) {
	bill := func(q plan.Pilot) cost.Money {
		_, money := h.Site(q.Site, q.Queue).Tariff.Bill(q)
		return money
	}
	second := map[int]int{} // :: pilot → its second one
	for i, q := range h.seconds {
		second[*q.Hedges] = i
	}
	for k, first := range h.made.Pilots {
		i, ok := second[k]
		if !ok {
			sum = sum.Plus(bill(first))
			continue
		}
		startUp := first
		startUp.End = first.Start + corral.Seconds(h.Site(first.Site, first.Queue).Overhead)
		works := h.held[len(h.made.Pilots)+i]
		sum = sum.Plus(max(bill(first)+bill(h.seconds[i]), bill(works)+bill(startUp)))
	}
	return sum
}

// affords reports whether the rest of a site's allocation covers all pilots at that site and one more, if all of them
// do the work.
func (h *hedging) affords(s *plan.Site, more plan.Pilot) bool {
	if s.Left == nil {
		return true
	}
	var spent cost.Money
	for _, q := range append(slices.Clone(h.held), more) {
		if q.Site == s.Name {
			_, money := s.Tariff.Bill(q)
			spent = spent.Plus(money)
		}
	}
	return spent <= *s.Left
}

// chained reports whether a pilot replaces another or is replaced.
func chained(pilots []plan.Pilot, k int) bool {
	return pilots[k].Follows != nil || slices.ContainsFunc(pilots, func(q plan.Pilot) bool {
		return q.Follows != nil && *q.Follows == k
	})
}

// twin adds a second pilot for pilot k. Among the other sites with enough cpus in addition to all pilots there, it
// chooses the site where the workers are expected first. The second pilot does not start before pilot k.
func (h *hedging) twin(k int) {
	of := h.made.Pilots[k]
	var best, whole plan.Pilot
	var at *plan.Site
	for i := range h.Sites {
		s := &h.Sites[i]
		host := of.Host()
		if s.Name == of.Site || of.Hosts > s.Hosts || !host.FitIn(s.Host) || time.Duration(of.Walltime) > s.Walltime {
			continue
		}
		q := of
		q.Site, q.Queue, q.Hedges = s.Name, s.Queue, &k
		if !h.time(s, &q, of) {
			continue
		}
		works := q
		works.End = max(q.Ready, q.Start+of.End-of.Start)
		held := plan.Span{From: time.Duration(q.Start), To: time.Duration(q.Start + q.Walltime)}
		if slices.ContainsFunc(s.Closed, held.Overlaps) || !h.affords(s, works) ||
			plan.Peak(append(slices.Clone(h.held), works), s.Name) > s.CPUs {
			continue
		}
		if at == nil || q.Ready < best.Ready {
			best, whole, at = q, works, s
		}
	}
	if at != nil && h.saves(of, best) {
		h.seconds, h.held = append(h.seconds, best), append(h.held, whole)
		h.take(at, best)
	}
}

// saves reports whether a second pilot can be in time if the first one waits for long.
func (h *hedging) saves(of, second plan.Pilot) bool {
	first := h.Site(of.Site, of.Queue)
	late := time.Duration(second.Ready - of.Ready)
	if first.Waits == nil || late <= 0 {
		return true // what a second pilot saves is not known, or it is not later
	}
	shape := first.ShapeOf(of)
	saving := first.Waits(shape, 0.9) - first.Waits(shape, 0.5)
	if late < saving {
		return true
	}
	h.late = fmt.Sprintf("the second one at %s would be ready %s after the first one at %s, of which 9 in 10 are at "+
		"most %s late", second.Site, late.Round(time.Second), of.Site, max(0, saving).Round(time.Second))
	return false
}

// none returns the reason why no pilot is hedged.
func (h *hedging) none() string {
	if h.late != "" {
		return "no pilot is hedged: " + h.late
	}
	return "no pilot is hedged: no other site has such hosts in addition to what the plan uses there, or they follow " +
		"each other; omit --hedge, or name other sites with --site"
}

// time sets the times of a second pilot: it starts as early as possible, but not before the first pilot. If the room of
// the queue is known, it shows when; otherwise, past waits do. ok is false if the pilot never fits.
func (h *hedging) time(s *plan.Site, q *plan.Pilot, of plan.Pilot) (ok bool) {
	room, walltime, n := h.rooms[s], time.Duration(of.Walltime), of.HeldCPUs()
	if room == nil {
		wait := corral.Seconds(s.Wait(s.ShapeOf(of)))
		q.Submit = max(of.Submit, of.Start-wait)
		q.Start = q.Submit + wait
	} else {
		start, fits := room.Fit(time.Duration(of.Start), walltime, n)
		if !fits {
			return false
		}
		q.Start = corral.Seconds(start)
		q.Submit = max(of.Submit, min(q.Start, corral.Seconds(room.Arrival(start, walltime, n))))
	}
	q.Ready = q.Start + corral.Seconds(s.Overhead)
	q.End, q.Early = q.Ready, q.Submit < q.Start
	return true
}
