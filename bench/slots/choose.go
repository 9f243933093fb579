package main

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/portfolio"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A picker chooses one of the candidates.
type picker struct {
	name string
	ways []portfolio.Way
}

// The pickers: each way by itself, and the best by forecast of those of a queue alone, and of all.
var pickers = []picker{
	{"jobs", []portfolio.Way{portfolio.Jobs}},
	{"one pilot", []portfolio.Way{portfolio.Pilot}},
	{"advertised slots", []portfolio.Way{portfolio.Slots}},
	{"prices", []portfolio.Way{portfolio.Prices}},
	{"auto, a queue alone", []portfolio.Way{portfolio.Jobs, portfolio.Pilot}},
	{"auto", []portfolio.Way{portfolio.Jobs, portfolio.Pilot, portfolio.Slots, portfolio.Prices}},
}

// choose has workflows get their processors in each of the ways at the same instants, and in the one that a forecast
// says is best: which should a user take? It asserts that the best by forecast is in the mean at most 3 % above the
// best single way, by J for each α.
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

// chosen prints and asserts it for one load and one α. Behind the pickers is what the planner's pilots come to.
func chosen(d *desk, states []*queue.Queue, load float64, alpha ensemble.Share) error {
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
		d.breaks("at %.2f load with α = %s the best by forecast has a J of %.3f, and the best way one of %.3f",
			load, alpha, weights[5], best)
	}
	return nil
}

// played is what came of one choice at all instants.
type played struct {
	pairs []pair
	taken map[portfolio.Way]int // how often each way was
}

// add adds an instant.
func (p *played) add(came, jobs cost.Point, way portfolio.Way) {
	if p.taken == nil {
		p.taken = map[portfolio.Way]int{}
	}
	p.pairs = append(p.pairs, pair{came, jobs})
	p.taken[way]++
}

// weight is J in the mean.
func (p *played) weight(alpha ensemble.Share) (mean float64) {
	for _, x := range p.pairs {
		mean += portfolio.Weigh(x.plan, x.best, alpha) / float64(len(p.pairs))
	}
	return mean
}

// of are the candidates that a picker may take.
func (p picker) of(all []portfolio.Candidate) (some []portfolio.Candidate) {
	for _, c := range all {
		if slices.Contains(p.ways, c.Way) {
			some = append(some, c)
		}
	}
	return some
}

// outcome is what came of a candidate among those who come later. What is reserved is kept. A pilot is submitted to a
// copy of the queue and starts when the copy has it start: what was planned for it stands as long as nobody asks for
// less time than he takes, and those who end early let it start before. Jobs were simulated by the desk, with all who
// came later.
func outcome(c portfolio.Candidate, q *queue.Queue, jobs cost.Point) cost.Point {
	switch c.Way {
	case portfolio.Jobs:
		return jobs
	case portfolio.Pilot:
		const ours = -5 // the user of no other job
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
