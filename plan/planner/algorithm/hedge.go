package algorithm

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/availability"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
)

// Hedge asks for each pilot of a plan at another site, too, where one like it is expected soonest: corrald withdraws
// the one whose workers are later. The plan's times and its schedule stay those of the first. The second one is there
// in time for the first one's work, if it waits as expected, and not before: whichever comes first is the one that
// stays.
//
// What it costs is expected to be what the second one holds until it is withdrawn, its start-up. If it is the second
// that works, its own price is paid for the work: the reasons say what all of it may come to at most, and that stays
// within the goal's budget and what is left at each site, or nothing is hedged.
//
// A pilot that takes the place of another, or whose place is taken, is not hedged: it is at its site for that. Where no
// other site has its hosts, or gives so many cpus, there is no second one either. The plan says how many there are.
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
		made.Reasons = append(made.Reasons, "no pilot is hedged: no other site gives hosts like theirs beside what "+
			"the plan has there, or they follow each other; leave --hedge out, or name other sites by --site")
		return made
	}
	if err := validator.Check(p, hedged); err != nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("its pilots are not hedged: %s", err))
		return made
	}
	most := cost.Amount{Money: h.most(), Unit: made.Cost.Unit}
	if budget := made.Goal.Budget; budget != nil && most.Money > budget.Money {
		made.Reasons = append(made.Reasons, fmt.Sprintf("its pilots are not hedged: if the second ones work it may "+
			"cost %s, and the budget is %s", most.Brief(), budget.Brief()))
		return made
	}
	hedged.Reasons = append(slices.Clone(made.Reasons), fmt.Sprintf("of %d pilots %d are asked for at another site, "+
		"too, and the later one is withdrawn: %s is expected instead of %s, and %s at most", len(made.Pilots), twins,
		hedged.Cost.Brief(), made.Cost.Brief(), most.Brief()))
	return hedged
}

// A hedging is the second pilots of a plan on their way.
type hedging struct {
	plan.Problem
	made    *plan.Plan
	held    []plan.Pilot // all of them, as if each were the one that works
	seconds []plan.Pilot
	rooms   map[*plan.Site]*availability.Profile // what all of them leave
}

func newHedging(p plan.Problem, made *plan.Plan) *hedging {
	h := &hedging{p, made, slices.Clone(made.Pilots), nil, map[*plan.Site]*availability.Profile{}}
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

// take leaves of a room what a pilot does that fits there.
func (h *hedging) take(s *plan.Site, q plan.Pilot) {
	from, to := time.Duration(q.Start), time.Duration(q.Start+q.Walltime)
	if room := h.rooms[s]; room != nil && room.Least(from, to) >= q.HeldCPUs() {
		room.Take(from, to, q.HeldCPUs())
	}
}

// plan is the plan with the second pilots behind the others.
func (h *hedging) plan() *plan.Plan {
	p := *h.made
	p.Pilots, p.Schedule = append(slices.Clone(p.Pilots), h.seconds...), slices.Clone(p.Schedule)
	for i := range p.Schedule {
		if at := &p.Schedule[i]; at.Pilot >= len(h.made.Pilots) {
			at.Pilot += len(h.seconds) // one that is present: they are numbered after the plan's
		}
	}
	measure(h.Problem, &p)
	if p.Assumed != nil {
		p.Assumed = plan.Assume(h.Problem, &p, p.Assumed.Spread)
	}
	return &p
}

// most is what all may cost at most: of each pair the dearer one works, and the other is withdrawn as late as can be.
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

// affords reports whether what is left at a site allows all of the plan's pilots there, and one more, to work.
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

// chained reports whether a pilot takes another's place, or another takes its.
func chained(pilots []plan.Pilot, k int) bool {
	return pilots[k].Follows != nil || slices.ContainsFunc(pilots, func(q plan.Pilot) bool {
		return q.Follows != nil && *q.Follows == k
	})
}

// twin adds a pilot like another at the site, of the others that give so many cpus beside all that are there, where its
// workers are expected first, and not before the other's are.
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
		h.time(s, &q, of)
		works := q
		works.End = max(q.Ready, q.Start+of.End-of.Start)
		held := plan.Span{From: time.Duration(q.Start), To: time.Duration(q.Start + q.Walltime)}
		if slices.ContainsFunc(s.Closed, held.Overlaps) || !h.affords(s, works) ||
			peak(append(slices.Clone(h.held), works), s.Name) > s.CPUs {
			continue
		}
		if at == nil || q.Ready < best.Ready {
			best, whole, at = q, works, s
		}
	}
	if at != nil {
		h.seconds, h.held = append(h.seconds, best), append(h.held, whole)
		h.take(at, best)
	}
}

// time sets when a second pilot is there: as soon as it can be, but not before the first one starts.
func (h *hedging) time(s *plan.Site, q *plan.Pilot, of plan.Pilot) {
	host := of.Host()
	if host.MemoryMiB == 0 {
		host.MemoryMiB = s.Host.MemoryMiB
	}
	wait := corral.Seconds(s.Wait(plan.Shape{Hosts: of.Hosts, Host: host, Walltime: time.Duration(of.Walltime)}))
	q.Submit = max(of.Submit, of.Start-wait)
	q.Start = q.Submit + wait
	if room := h.rooms[s]; room != nil {
		walltime, n := time.Duration(of.Walltime), of.HeldCPUs()
		if start, fits := room.Fit(time.Duration(of.Start), walltime, n); fits && corral.Seconds(start) < q.Start {
			q.Start = corral.Seconds(start)
			q.Submit = max(of.Submit, min(q.Start, corral.Seconds(room.Arrival(start, walltime, n))))
		}
	}
	q.Ready = q.Start + corral.Seconds(s.Overhead)
	q.End, q.Early = q.Ready, q.Submit < q.Start
}
