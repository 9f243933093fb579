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
}

// mostSearched is the maximum number of tasks of a workflow for searches in slots, because each trial schedules all
// tasks.
const mostSearched = 20_000

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
	if err != nil || !made.Feasible {
		return made, err
	}
	if q.Goal.Confidence == 0 { // with a confidence, only this plan was judged
		made, err = q.best(ctx, by, choices, made)
	}
	if err == nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("pilots use the current room of the queues (%s): jobs that "+
			"arrive before they are queued may take it", by))
	}
	return made, err
}

// best replays the plan of each choice and returns the best one for the goal, with the front of all replayed plans and
// with the limits and the lower bound of whole. If no feasible plan meets the goal, the goal is unreachable; if no plan
// is feasible, the error is of kind Unsatisfiable.
func (q Question) best(ctx context.Context, by plan.Algorithm, choices [][]planner.Slot, whole *plan.Plan) (*plan.Plan,
	error) {
	var all, others []*plan.Plan
	for _, c := range choices {
		q.Options.Slots = [][]planner.Slot{c}
		made, err := q.Model.Make(ctx, q.Goal, q.Options)
		if err != nil {
			return nil, err
		}
		if !made.Feasible {
			continue
		}
		switch p, ok := replayed(q.Model, made); {
		case ok && beyond(q.Goal, p):
			others = append(others, p)
		case ok:
			all = append(all, p)
		}
	}
	if len(all)+len(others) == 0 {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "algorithm", "with %s a task would be too late for its "+
			"slot when corrald matches tasks and pilots: use another algorithm", by)
	}
	front := frontOf(slices.Concat(all, others))
	if len(all) == 0 {
		near := liked(plan.Goal{Objective: plan.Makespan}, others)
		near.Front = front
		return &plan.Plan{Workflow: whole.Workflow, Goal: q.Goal, LowerBound: whole.LowerBound, Limits: whole.Limits,
			Pilots: []plan.Pilot{}, Alternatives: plan.Alternatives{Front: front, Nearest: near},
			Reasons: []string{fmt.Sprintf("none of the plans that %s found meets the goal: the fastest ends "+
				"after %s and costs %s", by, round(near.Makespan), near.Cost.Brief())}}, nil
	}
	best := liked(q.Goal, all)
	best.Front, best.Limits, best.LowerBound = front, whole.Limits, whole.LowerBound
	best.Assumed = plan.Assume(q.Model.Problem, best, q.Model.Spread.String())
	return best, nil
}

// frontOf returns the plans that are not dominated in both makespan and cost, by makespan.
func frontOf(all []*plan.Plan) []plan.Point {
	slices.SortStableFunc(all, func(a, b *plan.Plan) int {
		return cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.Cost.Money, b.Cost.Money))
	})
	front := []plan.Point{}
	for _, p := range all {
		if n := len(front); n == 0 || p.Cost.Money < front[n-1].Cost.Money {
			front = append(front, p.Point)
		}
	}
	return front
}

// beyond reports whether a plan violates its goal.
func beyond(goal plan.Goal, p *plan.Plan) bool {
	return goal.Deadline > 0 && p.Makespan > goal.Deadline ||
		goal.Budget != nil && p.Cost.Money > goal.Budget.Money
}

// liked returns the best plan for a goal: among equally good plans the cheapest, then the first.
func liked(goal plan.Goal, all []*plan.Plan) *plan.Plan {
	soonest, cheapest := all[0].Makespan, all[0].Cost.Money
	for _, p := range all {
		soonest, cheapest = min(soonest, p.Makespan), min(cheapest, p.Cost.Money)
	}
	value := func(p *plan.Plan) float64 {
		switch goal.Objective {
		case plan.Makespan:
			return float64(p.Makespan)
		case plan.Cost:
			return float64(p.Cost.Money)
		case plan.CPUs:
			return float64(p.PeakCPUs)
		}
		return goal.Tradeoff*float64(p.Cost.Money)/float64(max(1, cheapest)) +
			(1-goal.Tradeoff)*float64(p.Makespan)/float64(max(1, soonest))
	}
	return slices.MinFunc(all, func(a, b *plan.Plan) int {
		return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(a.Cost.Money, b.Cost.Money))
	})
}

// lasts returns how long a task takes at a site, including the time until a worker starts it.
func lasts(p plan.Problem, s *plan.Site, t plan.Task) time.Duration {
	return s.Takes(t) + p.Cluster.Hop
}

// stays returns how long workers can run tasks in a pilot that is held for the given time.
func stays(p plan.Problem, s *plan.Site, held time.Duration) time.Duration {
	return held - s.Overhead - s.Margin - p.Cluster.Leave
}
