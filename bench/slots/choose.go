package main

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/bench/portfolio"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A picker chooses one of the candidates.
type picker struct {
	name string
	ways []portfolio.Way
}

// pickers are each way alone, the best forecast of the ways that need only a queue, and the best forecast of all ways.
var pickers = []picker{
	{"jobs", []portfolio.Way{portfolio.Jobs}},
	{"one pilot", []portfolio.Way{portfolio.Pilot}},
	{"advertised slots", []portfolio.Way{portfolio.Slots}},
	{"prices", []portfolio.Way{portfolio.Prices}},
	{"auto, a queue alone", []portfolio.Way{portfolio.Jobs, portfolio.Pilot}},
	{"auto", []portfolio.Way{portfolio.Jobs, portfolio.Pilot, portfolio.Slots, portfolio.Prices}},
}

// choose gets processors for workflows in each of the ways at the same instants, and in the way with the best forecast.
// The question is which way a user should choose. It asserts that for each α the mean J of the best forecast is at most
// 3 % above that of the best single way.
func choose(d *desk) error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	const n = 50
	d.printf("\nWays to get processors, 100 tasks of 13 processors on 256, %s, %d instants; ratios to jobs, and J:\n\n",
		base.name, n)
	d.printf("| load | α | way | makespan | cost | J | chosen |\n|---|---|---|---|---|---|---|\n")
	for _, load := range []float64{0.65, 0.85} {
		states := base.loaded(load).states(n)
		for _, alpha := range alphas {
			if err := chosen(d, states, load, alpha); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen prints the rows and checks the assertion for one load and one α. The last row shows the planner's pilots.
func chosen(d *desk, states []*queue.Queue, load float64, alpha plan.Share) error {
	rows := make([]played, len(pickers)+1)
	for k, q := range states {
		w := plantest.Levels(typical, uint64(k))
		c, err := at(w, q)
		if err != nil {
			return err
		}
		all, err := portfolio.Candidates(w, portfolio.Site{Queue: q, Price: unit}, alpha, moga.Options{Seed: 1})
		if err != nil {
			return err
		}
		jobs, err := c.effort()
		if err != nil {
			return err
		}
		for i, p := range pickers {
			one := portfolio.Choose(p.of(all), all[0].Point, alpha)
			rows[i].add(outcome(one, q, jobs), jobs, one.Way)
		}
		stairs, err := staircase(w, q, alpha)
		if err != nil {
			return err
		}
		rows[len(pickers)].add(stairs, jobs, "staircase")
	}
	var weights []float64
	for i, row := range rows {
		name := "staircase of pilots"
		if i < len(pickers) {
			name = pickers[i].name
		}
		weights = append(weights, row.weight(alpha))
		d.printf("| %.2f | %s | %s | %s | %.3f | %.3f | %v |\n", load, alpha, name, ratioOf(row.pairs, makespans),
			ratioOf(row.pairs, costs).value, weights[i], row.taken)
	}
	if best := slices.Min(weights[:4]); weights[5] > 1.03*best {
		d.breaks("at %.2f load with α = %s the J of the best forecast is %.3f, and that of the best way is %.3f",
			load, alpha, weights[5], best)
	}
	return nil
}

// played holds the results of one choice at all instants.
type played struct {
	pairs []pair
	taken map[portfolio.Way]int // number of choices of each way
}

// add adds the result of an instant.
func (p *played) add(came, jobs cost.Point, way portfolio.Way) {
	if p.taken == nil {
		p.taken = map[portfolio.Way]int{}
	}
	p.pairs = append(p.pairs, pair{came, jobs})
	p.taken[way]++
}

// weight returns the mean J.
func (p *played) weight(alpha plan.Share) (mean float64) {
	for _, x := range p.pairs {
		mean += portfolio.Weigh(x.plan, x.best, alpha) / float64(len(p.pairs))
	}
	return mean
}

// of returns the candidates from which a picker may choose.
func (p picker) of(all []portfolio.Candidate) (some []portfolio.Candidate) {
	for _, c := range all {
		if slices.Contains(p.ways, c.Way) {
			some = append(some, c)
		}
	}
	return some
}

// outcome returns the result of a candidate among the jobs that arrive later. A reservation is kept. A pilot is
// submitted to a copy of the queue and starts when the copy starts it: its planned start holds as long as no user
// requests less time than their job takes, and jobs that end early let it start earlier. The desk has simulated the
// jobs, with all later arrivals.
func outcome(c portfolio.Candidate, q *queue.Queue, jobs cost.Point) cost.Point {
	switch c.Way {
	case portfolio.Jobs:
		return jobs
	case portfolio.Pilot:
		const ours = -5 // a user number that no other job has
		came, after := c.Point, q.Clone()
		after.Submit(queue.Job{User: ours, Processors: c.Width, Requested: c.Length, Runtime: c.Length})
		after.Advance(q.Now()+c.Makespan, func(j queue.Job, at time.Duration) {
			if j.User == ours {
				came.Makespan = at - q.Now() + c.Length
			}
		})
		return came
	}
	return c.Point
}
