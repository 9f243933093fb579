// Package greedy reserves processors for a workflow, task by task, at sites that price reservations (Singh, PhD thesis,
// University of Southern California, 2008, chapter 7, figure 51). Tasks are handled by rank. For each task all sites
// are asked for reservations that start once its parents have ended and their data has arrived, and the offer with the
// best trade-off between cost and the task's end is taken.
//
// Each task is weighed separately: the trade-off applies to that task's offers, not to whole plans. Therefore a higher
// weight of cost increases the makespan and reduces the cost only on average. With the lowest cost, no reservation
// delays other jobs.
//
// A plan has one reservation for each task, which suits workflows of up to a few hundred tasks. Larger workflows are
// planned with pilots; a task of this package then represents a job of many tasks.
package greedy

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Plan lists trial reservations and their tasks. To carry it out, make all reservations in this order; the fees
// remain valid as long as nothing else changes at the sites.
type Plan struct {
	cost.Point                   // the makespan counts from now
	Fees       cost.Money        // the part of the cost that compensates for others' waits
	Taken      []Taken           // in the order of reservation
	Schedule   []slotted.Running // for each task
}

// A Taken is a reservation for a task.
type Taken struct {
	Site, Task int
	slot.Slot
}

// Make plans a problem at the current time, with a market for each of its sites. The markets are not changed. The
// offers of the sites are ignored, except for their numbers of processors. A trade-off of 0 selects the earliest end of
// each task, and 1 the lowest cost; values outside this range are an error of kind Invalid. A task that no site can run
// is an error of kind Unsatisfiable.
func Make(p slotted.Problem, markets []market.Seller, now time.Duration, tradeoff plan.Share) (Plan, error) {
	if tradeoff < 0 || tradeoff > plan.Whole {
		return Plan{}, corral.Errorf(corral.Invalid, "the trade-off is %s: it must be between 0, for the shortest "+
			"makespan, and 1, for the lowest cost", tradeoff)
	}
	m := maker{Problem: p, now: now, tradeoff: tradeoff, work: map[cost.Money]int64{},
		plan: Plan{Schedule: make([]slotted.Running, len(p.Work.Tasks))}}
	for _, seller := range markets {
		m.markets = append(m.markets, seller.Trial())
	}
	for _, i := range slotted.Order(p) {
		if err := m.place(i); err != nil {
			return Plan{}, err
		}
	}
	m.plan.Cost = m.plan.Fees
	for price, work := range m.work {
		m.plan.Cost = m.plan.Cost.Plus(slot.Charge(price, work))
	}
	for _, r := range m.plan.Schedule {
		m.plan.Makespan = max(m.plan.Makespan, r.End-now)
	}
	return m.plan, nil
}

type maker struct {
	slotted.Problem
	markets  []market.Seller
	now      time.Duration
	tradeoff plan.Share
	work     map[cost.Money]int64 // :: price per hour → milliseconds of a processor, which are rounded once
	plan     Plan
}

// An offer is a possible reservation for a task.
type offer struct {
	site int
	slot.Slot
	comes cost.Point // the end of the task and the cost of the reservation
}

// place makes a reservation for a task.
func (m *maker) place(task int) error {
	t := &m.Work.Tasks[task]
	var all []offer
	for site := range m.markets {
		ready, takes := m.ready(task, site), m.takes(task, site)
		if takes <= 0 { // no reservation is needed
			all = append(all, offer{site, slot.Slot{Start: ready}, cost.Point{Makespan: ready}})
			continue
		}
		for _, s := range m.markets[site].From(ready, takes, max(1, t.Needs.CPUs)) {
			price, err := s.Cost(slot.Piece{Start: s.Start, Length: s.Length, Processors: s.Processors})
			if err != nil {
				return err
			}
			all = append(all, offer{site, s, cost.Point{Makespan: s.End(), Cost: price}})
		}
	}
	if len(all) == 0 {
		return corral.Errorf(corral.Unsatisfiable, "no site ever has %d processors for task %.80s",
			max(1, t.Needs.CPUs), t.ID)
	}
	o := all[Choose(points(all), m.tradeoff)]
	m.plan.Schedule[task] = slotted.Running{Site: o.site, Start: o.Start, End: o.End()}
	if o.Length == 0 {
		return nil
	}
	if err := m.markets[o.site].Reserve(o.Slot); err != nil {
		return err
	}
	m.plan.Taken = append(m.plan.Taken, Taken{o.site, task, o.Slot})
	m.work[o.Price] += int64(o.Processors) * o.Length.Milliseconds()
	m.plan.Fees = m.plan.Fees.Plus(o.Fee)
	return nil
}

func points(all []offer) (points []cost.Point) {
	for _, o := range all {
		points = append(points, o.comes)
	}
	return points
}

// ready returns the time by which all parents of a task have ended and their data has arrived at a site.
func (m *maker) ready(task, site int) time.Duration {
	at := m.now
	for _, p := range m.Work.Graph.Parents(task) {
		r := m.plan.Schedule[p]
		if end := r.End; r.Site != site && m.Transfer != nil {
			at = max(at, end+m.Transfer(p, task))
		} else {
			at = max(at, end)
		}
	}
	return at
}

// takes returns a task's runtime at a site.
func (m *maker) takes(task, site int) time.Duration {
	if own := m.Sites[site].Runtimes; own != nil {
		return own[task]
	}
	return m.Work.Task(task).Runtime
}

// Choose returns the index of the point with the lowest α × cost + (1 − α) × end, both relative to the range of all
// points (Singh 2008, equation 20). Ties go to the earliest, then the cheapest, then the first point. all must not be
// empty.
func Choose(all []cost.Point, tradeoff plan.Share) int {
	byEnd := func(a, b cost.Point) int { return cmp.Compare(a.Makespan, b.Makespan) }
	byCost := func(a, b cost.Point) int { return cmp.Compare(a.Cost, b.Cost) }
	ends := int64(slices.MaxFunc(all, byEnd).Makespan - slices.MinFunc(all, byEnd).Makespan)
	costs := int64(slices.MaxFunc(all, byCost).Cost - slices.MinFunc(all, byCost).Cost)
	if ends == 0 {
		ends = 1 // all ends are equal, so any divisor works
	}
	if costs == 0 {
		costs = 1
	}
	weights := make([]*big.Int, len(all))
	for i, p := range all {
		weights[i] = new(big.Int).Add(product(int64(tradeoff), int64(p.Cost), ends),
			product(int64(plan.Whole-tradeoff), int64(p.Makespan), costs))
	}
	best := 0
	for i := range all {
		if cmp.Or(weights[i].Cmp(weights[best]), byEnd(all[i], all[best]), byCost(all[i], all[best])) < 0 {
			best = i
		}
	}
	return best
}

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, x := range factors {
		p.Mul(p, big.NewInt(x))
	}
	return p
}
