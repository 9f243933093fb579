// Package algorithm has the algorithms by which a plan can be sought, and chooses among them by playing what each has
// made in the queues of the sites as they are now.
//
//	staircase  pilots come and go with the width of the graph, after waits as earlier pilots had them (planner)
//	moga       pilots are in the best choice of the slots that the queues have room for, found by a genetic search
//	greedy     the graph is cut into stages, and each takes the place and the width that weigh least for it
//	var        as staircase, but pilots for later stages are asked for so early that they are most probably in time
//	combined   as var, but a pilot that the queue has room for at its time waits for that and holds nothing idle
//	auto       all of them
//
// They differ in what they know. The first and var go by waits that have ended, the others by who is in line now; the
// queue tells more, of this hour, as long as nobody comes who may go first. So moga and greedy, and the rooms of
// combined, need a queue that was looked at: of a site without one they take its waits.
//
// The searches are those of Singh (PhD thesis, University of Southern California, 2008): chapter 4 for moga, equation
// 20 for greedy, chapter 6 for var and combined. There they reserve, one task at a time; here all of them end as
// pilots, by the list schedule of package planner, which has each checked. No pilot is asked for before its time
// because of a promise: a site that has room keeps it for nobody who is not in line (plan.Line).
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

// A Question is what plans are sought for.
type Question struct {
	Model   montecarlo.Model // of the problem, whose sites have rooms where their queues are known
	Goal    plan.Goal
	Options planner.Options // but for slots

	// Odds predicts whether pilots start in time at a queue of a site; nil: nothing is known of it.
	Odds func(site, queue string) virtual.Predictor
}

// mostSearched is how many tasks a workflow may have for the searches in slots: each of their trials schedules them
// all.
const mostSearched = 20_000

// Make returns the plan that an algorithm makes. Errors are the planner's and the cause with which ctx has ended; of
// kind Unsatisfiable, if the algorithm cannot be used here.
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

// staircase makes the plan of the planner, which knows waits alone.
func (q Question) staircase(ctx context.Context) (*plan.Plan, error) {
	q.Model.Sites = slices.Clone(q.Model.Sites)
	for i := range q.Model.Sites {
		q.Model.Sites[i].Room = nil
	}
	return q.Model.Make(ctx, q.Goal, q.Options)
}

// inSlots makes a plan in slots of one of some choices.
func (q Question) inSlots(ctx context.Context, by plan.Algorithm) (*plan.Plan, error) {
	if n := len(q.Model.Work.Tasks); n > mostSearched {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "algorithm", "%s takes workflows of %d tasks at most, and "+
			"this one has %d", by, mostSearched, n)
	}
	choices, err := greedily(q), error(nil)
	if by == plan.MOGA {
		choices, err = search(ctx, q)
	}
	if err == nil && len(choices) == 0 {
		err = corral.ErrorAt(corral.Unsatisfiable, "algorithm", "%s has found no room for all tasks in the queues "+
			"that are known", by)
	}
	if corral.KindOf(err) == corral.Unsatisfiable {
		if plain, failed := q.staircase(ctx); failed != nil || !plain.Feasible {
			return plain, failed // nothing can be done at all, which the planner says best
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
	if q.Goal.Confidence == 0 { // else it is known of this plan how often it comes out, and no other was looked at so
		made, err = q.best(ctx, by, choices, made)
	}
	if err == nil {
		made.Reasons = append(made.Reasons, fmt.Sprintf("pilots are where the queues had room by now (%s): whoever "+
			"comes later may take it unless they are in line", by))
	}
	return made, err
}

// best replays the plan of each choice, and returns the one that the goal likes best, with what was found out when all
// were considered together. If those that come out do not keep to the goal it is out of reach; if none comes out at
// all, that is an error of kind Unsatisfiable.
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
		return nil, corral.ErrorAt(corral.Unsatisfiable, "algorithm", "with %s some task would come too late for its "+
			"slot, as corrald matches tasks and pilots: take another algorithm", by)
	}
	front := frontOf(slices.Concat(all, others))
	if len(all) == 0 {
		near := liked(plan.Goal{Objective: plan.Makespan}, others)
		near.Front = front
		return &plan.Plan{Workflow: whole.Workflow, Goal: q.Goal, LowerBound: whole.LowerBound, Limits: whole.Limits,
			Pilots: []plan.Pilot{}, Alternatives: plan.Alternatives{Front: front, Nearest: near},
			Reasons: []string{fmt.Sprintf("of the plans that %s has found none keeps to the goal: the soonest ends "+
				"after %s and costs %s", by, round(near.Makespan), near.Cost.Brief())}}, nil
	}
	best := liked(q.Goal, all)
	best.Front, best.Limits, best.LowerBound = front, whole.Limits, whole.LowerBound
	best.Assumed = plan.Assume(q.Model.Problem, best, q.Model.Spread.String())
	return best, nil
}

// frontOf are plans of which no other is both sooner and cheaper, by makespan.
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

// beyond reports whether a plan does not keep to its goal.
func beyond(goal plan.Goal, p *plan.Plan) bool {
	return goal.Deadline > 0 && p.Makespan > goal.Deadline ||
		goal.Budget != nil && p.Cost.Money > goal.Budget.Money
}

// liked is the plan that a goal likes best: of equal ones the cheaper, and the first.
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

// lasts is what a task takes at a site, its way to a worker included.
func lasts(p plan.Problem, s *plan.Site, t plan.Task) time.Duration {
	return s.Takes(t) + p.Cluster.Hop
}

// stays is how long workers can be there in a time in which a pilot holds its place.
func stays(p plan.Problem, s *plan.Site, held time.Duration) time.Duration {
	return held - s.Overhead - s.Margin - p.Cluster.Leave
}
