package algorithm

// The contest. The figures of plans by different algorithms are not comparable: one assumes past waits, another that no
// jobs arrive, a third pays for certainty. Therefore all plans are simulated in the same current queues with the same
// runtimes. This is still a forecast: it assumes that no further jobs arrive.
//
// A plan whose pilots leave before all tasks are done is not rejected: corrald would request another pilot, and the
// simulation does the same (montecarlo.Model.Ended).

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
)

// entrants lists the algorithms that Auto compares. Ties are resolved in this order: the algorithm with the fewest
// assumptions first.
var entrants = []plan.Algorithm{plan.Staircase, plan.Greedy, plan.MOGA, plan.VAR, plan.Combined}

// mostPlayed is the maximum number of simulated outcomes per plan, and playedTasks is the maximum of their tasks in
// total.
const (
	mostPlayed  = 20
	playedTasks = 400_000
)

// roughDraws is the number of outcomes by which the contest judges a candidate for a goal with a confidence. The winner
// makes its plan again, with as many outcomes as it takes alone, and with the walltimes that suit it.
const roughDraws = 100

// contest makes a plan with each algorithm, simulates all plans in the same outcomes, and returns the best plan for the
// goal, with the results of all plans. An algorithm without a plan is listed with the reason. If there is no plan at
// all, it returns the planner's answer.
func (q Question) contest(ctx context.Context) (*plan.Plan, error) {
	rough := q
	rough.Model.Rough = roughDraws
	made, err := rough.staircase(ctx)
	if err != nil {
		return nil, err
	}
	rough.waiting = made
	var all []plan.Entrant
	var plans []*plan.Plan
	for _, by := range entrants {
		made, e, err := rough.enter(ctx, by)
		if err != nil {
			return nil, err
		}
		all, plans = append(all, e), append(plans, made)
	}
	best := choose(q.Goal, all)
	for best >= 0 {
		made, e, err := q.enter(ctx, entrants[best])
		if err != nil {
			return nil, err
		}
		if all[best], plans[best] = e, made; e.Why == "" {
			break
		}
		best = choose(q.Goal, all)
	}
	if best < 0 {
		if plans[0].Feasible { // the contest shows the results of its simulation
			plans[0].Contest = all
		}
		return plans[0], nil
	}
	won := plans[best]
	if all[best].Missed > mostMissed && q.Goal.Bounded() {
		return outOfReach(q.Goal, all, plans), nil
	}
	all[best].Won = true
	won.Contest, won.Reasons = all, append(won.Reasons, why(q.Goal, all, best))
	return won, nil
}

// Ways returns for a comparison the plans of all algorithms except that of the given plan, or the reasons why they made
// none. A confidence is judged roughly. It returns none if the plan cannot be compared (see montecarlo.Model.Compare).
func (q Question) Ways(ctx context.Context, made *plan.Plan) (all []montecarlo.Way, err error) {
	if montecarlo.Draws(len(q.Model.Work.Tasks)) == 0 || len(made.Pilots) == 0 {
		return nil, nil
	}
	if q.Goal.Confidence > 0 && q.Goal.Bounded() {
		q.Model.Rough = roughDraws
	}
	if q.waiting, err = q.staircase(ctx); err != nil {
		return nil, err
	}
	for _, by := range entrants {
		if by == cmp.Or(made.Algorithm, plan.Staircase) {
			continue
		}
		other, err := q.Make(ctx, by)
		switch {
		case err != nil && corral.KindOf(err) != corral.Unsatisfiable || ctx.Err() != nil:
			return nil, errors.Join(err, context.Cause(ctx))
		case err != nil:
			all = append(all, montecarlo.Way{By: by, Why: err.Error()})
		case !other.Feasible:
			all = append(all, montecarlo.Way{By: by, Why: other.Reasons[0]})
		default:
			all = append(all, montecarlo.Way{By: by, Plan: other})
		}
	}
	return all, nil
}

// enter makes the plan of one algorithm and simulates it. Without a plan, the entrant has the reason.
func (q Question) enter(ctx context.Context, by plan.Algorithm) (made *plan.Plan, e plan.Entrant, err error) {
	made, err = q.Make(ctx, by)
	if err != nil && corral.KindOf(err) != corral.Unsatisfiable || ctx.Err() != nil {
		return nil, e, errors.Join(err, context.Cause(ctx))
	}
	e = plan.Entrant{Algorithm: by, Missed: 1}
	switch {
	case err != nil:
		e.Why = err.Error()
	case !made.Feasible:
		e.Why = made.Reasons[0]
	default:
		e.PeakCPUs, e.Planned = made.PeakCPUs, made.Makespan
		q.play(ctx, made, &e)
	}
	return made, e, nil
}

// mostMissed is the maximum share of outcomes in which an accepted plan may miss its deadline or its budget, if no
// confidence was requested.
const mostMissed = 0.5

// A plan's own figures follow from its assumptions and remain unchanged. The results of the simulation are in the
// contest; they affect only whether there is a plan for the goal at all.

// outOfReach returns the answer if every plan misses the goal in most outcomes, regardless of the plans' own figures,
// because a simulation in the current queues is more accurate. The nearest plan is the one that ends first or, if only
// the budget is missed, the cheapest.
func outOfReach(goal plan.Goal, all []plan.Entrant, plans []*plan.Plan) *plan.Plan {
	by, most := plan.Goal{Objective: plan.Makespan}, "soonest"
	if goal.Deadline == 0 {
		by.Objective, most = plan.Cost, "cheapest"
	}
	level := slices.Clone(all)
	for i := range level {
		level[i].Missed = 0
	}
	k := choose(by, level)
	near := all[k]
	reach := fmt.Sprintf("the %s, by %s, ends after %s and costs %s", most, near.Algorithm,
		round(near.Makespan), near.Cost.Brief())
	if goal.Deadline > 0 && near.Makespan > goal.Deadline {
		reach += fmt.Sprintf("; --deadline %s is within reach",
			(round(near.Makespan) + time.Minute).Truncate(time.Minute))
	}
	nearest := plans[k]
	pl := &plan.Plan{Workflow: nearest.Workflow, Goal: goal, LowerBound: nearest.LowerBound,
		Alternatives: plan.Alternatives{Front: nearest.Front, Nearest: nearest}, Pilots: []plan.Pilot{},
		Reasons: []string{"in the current queues every plan misses the goal in most outcomes: " + reach}}
	pl.Algorithm, pl.Contest = plan.Auto, all
	return pl
}

// play simulates a plan and stores its results.
func (q Question) play(ctx context.Context, made *plan.Plan, e *plan.Entrant) {
	n := max(1, min(mostPlayed, playedTasks/len(q.Model.Work.Tasks)))
	outcomes := q.Model.Ended(ctx, made, n, q.Options.Seed)
	var makespans []time.Duration
	var spent cost.Money
	missed := 0
	for _, o := range outcomes {
		spent = spent.Plus(o.Cost)
		if o.Finished {
			makespans = append(makespans, o.Makespan)
		}
		if misses(q.Goal, o) {
			missed++
		}
	}
	if len(makespans) == 0 {
		e.Why, e.PeakCPUs, e.Planned = "its pilots, and their replacements, leave tasks undone", 0, 0
		return
	}
	slices.Sort(makespans)
	e.Makespan = corral.Seconds(makespans[len(makespans)/2])
	e.Cost = cost.Amount{Money: spent / cost.Money(n), Unit: q.Model.Unit()}
	e.Missed = float64(missed) / float64(n)
}

// misses reports whether an outcome misses the goal.
func misses(goal plan.Goal, o montecarlo.Outcome) bool {
	return !o.Finished || goal.Deadline > 0 && o.Makespan > time.Duration(goal.Deadline) ||
		goal.Budget != nil && o.Cost > goal.Budget.Money
}

// choose returns the index of the best entrant with a plan, or -1. An entrant that misses the goal in fewer outcomes is
// better; among those whose shares differ by at most 5 %, the goal's objective decides (plan.Goal.Order).
func choose(goal plan.Goal, all []plan.Entrant) int {
	var made []int
	least := 1.0
	for i, e := range all {
		if e.Why == "" {
			made, least = append(made, i), min(least, e.Missed)
		}
	}
	var candidates []plan.Candidate
	for _, i := range made {
		e := all[i]
		candidates = append(candidates, plan.Candidate{CPUs: e.PeakCPUs, Outside: e.Missed > least+0.05,
			Point: cost.Point{Makespan: time.Duration(e.Makespan), Cost: e.Cost.Money}})
	}
	if goal.Objective == plan.Tradeoff || goal.Objective == "" {
		w := plan.Weigh(goal.Tradeoff, candidates)
		for k, i := range made {
			all[i].Weight = w.Of(candidates[k].Point)
		}
	}
	best := goal.Best(candidates, nil)
	if best < 0 {
		return -1
	}
	return made[best]
}

// why explains the choice in one sentence.
func why(goal plan.Goal, all []plan.Entrant, best int) string {
	w := all[best]
	by := map[plan.Objective]string{plan.Makespan: "it ends first", plan.CPUs: "it holds the fewest cpus",
		plan.Cost: "it ends first of those within 1 % of the least cost"}[goal.Objective]
	if by == "" {
		by = fmt.Sprintf("it ends first of those within 1 %% of the lowest weight with --tradeoff %s", goal.Tradeoff)
	}
	said := fmt.Sprintf("%s is chosen: simulated in the current queues, %s, %s for %s", w.Algorithm, by,
		round(w.Makespan), w.Cost.Brief())
	if w.Missed > 0 {
		said += fmt.Sprintf(", but misses the goal in %.0f %% of outcomes", 100*w.Missed)
	}
	return said
}

func round(d corral.Seconds) time.Duration { return time.Duration(d).Round(time.Second) }
