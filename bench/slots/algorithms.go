package main

// This file compares the algorithms of corral plan. The thesis compares reservations; these are pilots, which wait in
// the queue like other users' jobs. The questions are a user's: how soon does the workflow end, what does it cost, and
// how often is it far too late?
//
// The site knows the waits of all earlier jobs, as if each had been one of our pilots. The staircase and VAR therefore
// know as much as possible; a user who has run ten pilots there knows less.

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/portfolio"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/planner/virtual"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// algorithms makes plans with each algorithm of corral plan at the same fifty instants, and simulates them among the
// jobs that arrive later. The question is which algorithm a user should choose. The staircase and VAR know the waits of
// all earlier jobs; the others know the queue's contents. A plan misses if it takes more than 1.5 times as long as
// jobs; where an algorithm makes no plan, the staircase's plan replaces it. algorithms asserts that the mean J of auto,
// which simulates the plans in the queue's current state, is at most 3 % above that of the best single algorithm.
func algorithms(d *desk) error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	const n = 50
	d.printf("\nPlans of pilots by algorithm, 100 tasks of 13 processors on 256, %s, %d instants; ratios to jobs, "+
		"J, and plans that miss a deadline of 1.5 times what jobs take, in %%:\n\n", base.name, n)
	d.printf("| load | α | algorithm | makespan | cost | J | missed | pilots | none |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	series := make([]plot.Series, len(plan.Algorithms))
	for _, load := range []float64{0.65, 0.85} {
		m := base.loaded(load)
		held, states := queue.Replay(m.Machine, m.jobs), m.states(n)
		for _, alpha := range alphas {
			sums, err := byAlgorithm(d, held, states, load, alpha)
			if err != nil {
				return err
			}
			for i, by := range plan.Algorithms {
				at := plot.XY{X: ratioOf(sums[by].pairs, costs).value, Y: ratioOf(sums[by].pairs, makespans).value}
				series[i].Name, series[i].Dots, series[i].At = string(by), true, append(series[i].At, at)
			}
		}
	}
	return draw(d, "slots-algorithms", plot.Chart{Title: "Plans of pilots by algorithm",
		Subtitle: "two loads, three trade-offs, 50 instants each", X: "cost ÷ jobs", Y: "makespan ÷ jobs",
		Series: append(series[1:], series[0])}) // auto last, so that it is drawn on top
}

// A sum accumulates the results of an algorithm's plans.
type sum struct {
	played
	missed, pilots float64
	none           int // instants at which it made no plan
}

// byAlgorithm prints the rows and checks the assertion for one load and one α.
func byAlgorithm(d *desk, held []queue.Held, states []*queue.Queue, load float64,
	alpha plan.Share) (sums map[plan.Algorithm]*sum, err error) {
	order := slices.DeleteFunc(slices.Clone(plan.Algorithms), func(a plan.Algorithm) bool { return a == plan.Auto })
	sums = map[plan.Algorithm]*sum{plan.Auto: {}}
	for k, q := range states {
		w := plantest.Levels(typical, uint64(k))
		c, err := at(w, q)
		if err != nil {
			return nil, err
		}
		jobs, err := c.effort()
		if err != nil {
			return nil, err
		}
		asked := inQueue(w, q, held, alpha)
		among := asked.Model // among the jobs that arrive later
		among.Queues = montecarlo.Queues{{"site", ""}: q}
		plans, none, err := plansBy(asked)
		if err != nil {
			return nil, err
		}
		for by, made := range plans {
			s := sums[by]
			if s == nil {
				s = &sum{}
				sums[by] = s
			}
			o := among.Ended(context.Background(), made, 1, 1)[0]
			s.add(cost.Point{Makespan: o.Makespan, Cost: cost.Money(math.Round(o.Held.Hours() * float64(unit)))}, jobs,
				portfolio.Way(made.Algorithm))
			if none[by] {
				s.none++
			}
			s.pilots += float64(o.Requests) / float64(len(states))
			if !o.Finished || o.Makespan > jobs.Makespan*3/2 {
				s.missed += 100 / float64(len(states))
			}
		}
	}
	best := math.Inf(1)
	for _, by := range append(order, plan.Auto) {
		s := sums[by]
		if by != plan.Auto {
			best = min(best, s.weight(alpha))
		}
		d.printf("| %.2f | %s | %s | %s | %.3f | %.3f | %.0f | %.1f | %d |\n", load, alpha, by,
			ratioOf(s.pairs, makespans), ratioOf(s.pairs, costs).value, s.weight(alpha), s.missed, s.pilots, s.none)
	}
	d.printf("| | | auto takes | %v | | | | | |\n", sums[plan.Auto].taken)
	if j := sums[plan.Auto].weight(alpha); j > 1.03*best {
		d.breaks("at %.2f load with α = %s auto's J is %.3f, and the best algorithm's is %.3f", load, alpha, j,
			best)
	}
	return sums, nil
}

// plansBy returns the plans of all algorithms, and which of them made none: the staircase's plan replaces theirs.
func plansBy(q algorithm.Question) (plans map[plan.Algorithm]*plan.Plan, none map[plan.Algorithm]bool, err error) {
	plans, none = map[plan.Algorithm]*plan.Plan{}, map[plan.Algorithm]bool{}
	ctx := context.Background()
	if plans[plan.Staircase], err = q.Make(ctx, plan.Staircase); err != nil {
		return nil, nil, err
	}
	for _, by := range plan.Algorithms {
		made, err := q.Make(ctx, by)
		switch {
		case corral.KindOf(err) == corral.Unsatisfiable:
			made, none[by] = plans[plan.Staircase], true
		case err != nil:
			return nil, nil, err
		}
		plans[by] = made
	}
	return plans, none, nil
}

// inQueue returns the planning problem of a workflow that needs pilots in a queue. The planner knows the queue's jobs
// and the waits of all earlier ones.
func inQueue(w plan.Work, q *queue.Queue, held []queue.Held, alpha plan.Share) algorithm.Question {
	known := waits(held, q.Now())
	odds := queueing.NewPredictor(known, epoch.Add(q.Now()))
	at := plan.Site{Name: "site", Hosts: plan.Unlimited, Pilots: plan.Unlimited, CPUs: q.Free().Processors(),
		Host: corral.Resources{CPUs: q.Free().Processors(), MemoryMiB: plan.Unlimited, GPUs: plan.Unlimited,
			DiskMiB: plan.Unlimited},
		Walltime: plan.Unbounded, Margin: 2 * time.Minute, Tariff: plan.CoreHours}
	var medians []time.Duration // :: power of two of processors → median of the waits of like jobs
	for n := 1; n <= at.CPUs; n *= 2 {
		near := queueing.Quantile(queueing.Near(n, known), 0.5, epoch.Add(q.Now()))
		medians = append(medians, time.Duration(near.Wait).Truncate(time.Second))
	}
	at.Wait = func(shape plan.Shape) time.Duration {
		return medians[min(len(medians)-1, bits.Len(uint(shape.Hosts*shape.Host.CPUs))-1)]
	}
	at.Room = queue.Unplanned(q).From(q.Now())
	return algorithm.Question{
		Model: montecarlo.Model{Problem: plan.Problem{Work: w, Sites: []plan.Site{at}},
			Queues: montecarlo.Queues{{"site", ""}: queue.Alone(q)}},
		Goal:    plan.Goal{Objective: plan.Tradeoff, Tradeoff: alpha},
		Options: planner.Options{Seed: 1, Clustering: &clustering.Rule{}},
		Odds: func(string, string) virtual.Predictor {
			return func(n int, walltime, within time.Duration) float64 {
				share, _ := odds.Estimate(n, walltime, within)
				return share
			}
		},
	}
}
