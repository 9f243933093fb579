// Package algorithm implements the planning algorithms, and chooses among them by simulating their plans in the current
// queues of the sites.
//
//	staircase  pilots follow the width of the graph, with waits from the history of pilots (planner)
//	moga       a genetic search for the best slots in the free capacity of the queues
//	greedy     the graph is cut into stages; each stage gets the place and the width with the lowest weight
//	var        like staircase, but pilots for later stages are requested so early that they are probably in time
//	combined   like var, but a pilot that fits into the queue's free capacity is queued for it and not held idle
//	auto       the best plan of all these algorithms, according to a simulation
//
// They differ in the information that they use. staircase and var use past waits, the others use the current queue. The
// queue is more accurate for the near future, as long as no jobs with a higher priority arrive. Therefore moga, greedy,
// and combined need a queue that was examined; for sites whose queue was not examined they use past waits.
//
// The searches are those of Singh (PhD thesis, University of Southern California, 2008): chapter 4 for moga, equation
// 20 for greedy, chapter 6 for var and combined. There, each task gets a reservation; here, the result is always a set
// of pilots, made by the list schedule of package planner, which checks each plan. No site reserves its free capacity
// for a pilot that is not queued, so pilots are queued in time (plan.Line).
package algorithm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/planner/virtual"
)

// A Question is a problem with a goal, for which a plan is wanted.
type Question struct {
	Model   montecarlo.Model // model of the problem; its sites have rooms if their queues are known
	Goal    plan.Goal
	Options planner.Options // except Slots

	// Odds returns the predictor of whether pilots in a queue of a site start in time; nil: no predictor is available.
	Odds func(site, queue string) virtual.Predictor

	// Queued are the model's sites with the rooms of their queues, for the second pilots of a plan that does not use
	// rooms otherwise; nil: the model's own.
	Queued []plan.Site

	waiting *plan.Plan // the staircase's plan, on which others are based; nil: not made yet
}

// mostSearched is the maximum number of tasks of a workflow for searches in slots, because each trial schedules all
// tasks.
const mostSearched = 20_000

// mostUsual is the maximum number of tasks of a workflow for which all algorithms are tried unless one is requested:
// that takes some five times as long as one of them, so a few seconds.
const mostUsual = 200

// Usual returns the algorithm for a workflow if none is requested and the queue of a site is known. It depends only on
// the number of tasks, so that the same request has the same plan on any machine.
func Usual(tasks int) plan.Algorithm {
	if tasks <= mostUsual {
		return plan.Auto
	}
	return plan.Staircase
}

// Make returns the plan of an algorithm. An error is an error of the planner, the cause of the cancellation of ctx, or
// an error of kind Unsatisfiable if the algorithm is not applicable.
func (q Question) Make(ctx context.Context, by plan.Algorithm) (made *plan.Plan, err error) {
	switch by {
	case plan.Auto:
		return q.contest(ctx)
	case plan.MOGA, plan.Greedy:
		made, err = q.inSlots(ctx, by)
	case plan.VAR, plan.Combined:
		made, err = q.early(ctx, by == plan.Combined)
	default:
		made, err = q.staircase(ctx)
	}
	for p := made; p != nil; p = p.Nearest {
		p.Algorithm = cmp.Or(by, plan.Staircase)
	}
	return made, err
}

// staircase returns the planner's plan, which uses waits only.
func (q Question) staircase(ctx context.Context) (*plan.Plan, error) {
	if q.waiting != nil {
		made := *q.waiting
		made.Reasons = slices.Clone(made.Reasons)
		if made.Nearest != nil {
			nearest := *made.Nearest
			made.Nearest = &nearest
		}
		return &made, nil
	}
	q.Model.Sites = slices.Clone(q.Model.Sites)
	for i := range q.Model.Sites {
		q.Model.Sites[i].Room = nil
	}
	return q.Model.Make(ctx, q.Goal, q.Options)
}

// inSlots makes a plan in the slots of one of several choices.
func (q Question) inSlots(ctx context.Context, by plan.Algorithm) (*plan.Plan, error) {
	if n := len(q.Model.Work.Tasks); n > mostSearched {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "algorithm", "%s accepts workflows of at most %d tasks, but "+
			"this one has %d", by, mostSearched, n)
	}
	choices, err := greedily(q), error(nil)
	if by == plan.MOGA {
		choices, err = search(ctx, q)
	}
	if err == nil && len(choices) == 0 {
		err = corral.ErrorAt(corral.Unsatisfiable, "algorithm", "%s found no room for all tasks in the queues "+
			"that are known", by)
	}
	if corral.KindOf(err) == corral.Unsatisfiable {
		if plain, failed := q.staircase(ctx); failed != nil || !plain.Feasible {
			return plain, failed // there is no plan at all, and the planner explains why
		}
	}
	if err != nil {
		return nil, err
	}
	q.Options.Slots = choices
	made, err := q.Model.Make(ctx, q.Goal, q.Options)
	if err != nil {
		return nil, err
	}
	if !made.Feasible && made.Nearest == nil {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "algorithm", "with %s a task would be too late for its "+
			"slot when corrald matches tasks and pilots: use another algorithm", by)
	}
	made.Reasons = append(made.Reasons, fmt.Sprintf("pilots use the current room of the queues (%s): jobs that "+
		"arrive before they are queued may take it", by))
	return made, nil
}

// lasts returns how long a task takes at a site, including the time until a worker starts it.
func lasts(p plan.Problem, s *plan.Site, t plan.Task) time.Duration {
	return s.Takes(t) + p.Cluster.Hop
}

// stays returns how long workers can run tasks in a pilot that is held for the given time.
func stays(p plan.Problem, s *plan.Site, held time.Duration) time.Duration {
	return held - s.Overhead - s.Margin - p.Cluster.Leave
}
