package main

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/dpds"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/planner/spss"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// A problem is an ensemble with constraints and random effects.
type problem struct {
	cloud.Scenario
	budget   cost.Money
	expected rehearsal.Problem // what is known in advance about delays and errors
}

// A result is the outcome of an algorithm for a problem.
type result struct {
	score    ensemble.Score // the score that counts: completed by the deadline, within the budget
	admitted ensemble.Score // for a static plan: the score that the authors' program counts
	cost     cost.Money
	makespan time.Duration // until the end of the last task that ended by the deadline
	withLate time.Duration // until the end of the last task
}

// An algorithm solves problems.
type algorithm struct {
	name  string
	solve func(problem) result
}

// asPublished are the three algorithms as in the authors' program; for SPSS, the admitted workflows count.
var asPublished = []algorithm{
	{"DPDS", func(p problem) result { return p.online(dpds.Published(p.budget, p.Deadline, p.Terms)) }},
	{"WA-DPDS", func(p problem) result {
		r := dpds.Published(p.budget, p.Deadline, p.Terms)
		r.Aware = true
		return p.online(r)
	}},
	{"SPSS", func(p problem) result {
		r := p.bound(spss.Published(p.budget, p.Deadline, p.Terms))
		r.score = r.admitted
		return r
	}},
}

// corrected are the same algorithms with all corrections; for SPSS, the workflows completed by the deadline and within
// the budget count.
var corrected = []algorithm{
	{"DPDS", func(p problem) result { return p.online(dpds.Default(p.budget, p.Deadline, p.Terms)) }},
	{"WA-DPDS", func(p problem) result {
		r := dpds.Default(p.budget, p.Deadline, p.Terms)
		r.Aware = true
		return p.online(r)
	}},
	{"SPSS", func(p problem) result { return p.bound(spss.Default(p.budget, p.Deadline, p.Terms)) }},
	{"SPSS, guarded", func(p problem) result {
		r := spss.Default(p.budget, p.Deadline, p.Terms)
		r.Delay = p.expected.Delay
		g := spss.NewGuard(r, p.Ensemble, r.Make(p.Ensemble))
		if p.expected.Spread.Law != "" {
			return p.online(g.Shared())
		}
		return p.online(g)
	}},
	{"rehearsal", func(p problem) result {
		return p.online(rehearsal.Choose(p.rehearsed())[0].Policy)
	}},
}

func (p problem) rehearsed() rehearsal.Problem {
	r := p.expected
	r.Ensemble, r.Budget, r.Deadline, r.Terms = p.Ensemble, p.budget, p.Deadline, p.Terms
	return r
}

// online simulates a problem with a policy.
func (p problem) online(policy ensemble.Strategy) result {
	return p.of(cloud.Online(p.Scenario, policy))
}

// bound plans a problem, and simulates the plan without deviations.
func (p problem) bound(r spss.Rules) result {
	pl := r.Make(p.Ensemble)
	out := p.of(cloud.Bound(p.Scenario, pl))
	out.admitted = ensemble.ScoreOf(pl.Admitted)
	return out
}

func (p problem) of(o cloud.Outcome) result {
	r := result{score: o.Completed, cost: o.Cost, makespan: o.Makespan, withLate: o.Last}
	if o.Cost > p.budget {
		r.score = ensemble.ScoreOf(make([]bool, len(p.Ensemble)))
	}
	return r
}
