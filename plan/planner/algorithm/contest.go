package algorithm

// The contest. What a plan says of itself cannot be compared with what another says: one assumes waits as they were,
// the other that nobody comes, a third pays for certainty. So all are played in the same queues, as they are now, with
// the same runtimes. That is still a forecast: who has not come by now does not come.
//
// A plan that leaves work undone when its pilots have gone is not thrown away for it: corrald would ask for another,
// and so does the simulation (montecarlo.Model.Ended).

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

// entrants are the algorithms that Auto compares, in the order in which equal ones are preferred: the fewest
// assumptions first.
var entrants = []plan.Algorithm{plan.Staircase, plan.Greedy, plan.MOGA, plan.VAR, plan.Combined}

// Outcomes that are played of each plan, and how many tasks they may have together.
const (
	mostPlayed  = 20
	playedTasks = 400_000
)

// contest has each algorithm make a plan, plays them all in the same outcomes, and returns the one that comes out best
// by the goal, with what each has come to. An algorithm that makes no plan is in the list with the reason. If none
// makes one, the planner's answer stands.
func (q Question) contest(ctx context.Context) (*plan.Plan, error) {
	var all []plan.Entrant
	var plans []*plan.Plan
	for _, by := range entrants {
		made, err := q.Make(ctx, by)
		if err != nil && corral.KindOf(err) != corral.Unsatisfiable || ctx.Err() != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		e := plan.Entrant{Algorithm: by, Missed: 1}
		switch {
		case err != nil:
			e.Why = err.Error()
		case !made.Feasible:
			e.Why = made.Reasons[0]
		default:
			e.PeakCPUs = made.PeakCPUs
			q.play(ctx, made, &e)
		}
		all, plans = append(all, e), append(plans, made)
	}
	best := choose(q.Goal, all)
	if best < 0 {
		if plans[0].Feasible { // what has become of it when it was played is to be seen
			plans[0].Contest = all
		}
		return plans[0], nil
	}
	won := plans[best]
	if all[best].Missed > mostMissed && bounded(q.Goal) {
		return outOfReach(q.Goal, all, plans), nil
	}
	all[best].Won = true
	won.Contest, won.Reasons = all, append(won.Reasons, why(q.Goal, all, best))
	return won, nil
}

// mostMissed is in which share of outcomes a plan may miss its deadline or its budget that is taken all the same, if no
// confidence was asked for.
const mostMissed = 0.5

func bounded(goal plan.Goal) bool { return goal.Deadline > 0 || goal.Budget != nil }

// A plan's own figures are those of its assumptions, and stay in it. What auto has found out by playing it is in the
// contest; only where it is about the goal does it decide whether there is a plan at all.

// outOfReach is the answer where every plan misses the goal more often than not, whatever it says of itself: of the
// queues as they are it is known better. The nearest is the one that ends soonest, or, if only the budget is missed,
// that costs least.
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
		Reasons: []string{"in the queues as they are every plan misses the goal more often than not: " + reach}}
	pl.Algorithm, pl.Contest = plan.Auto, all
	return pl
}

// play fills in what a plan comes to.
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
		e.Why, e.PeakCPUs = "its pilots, and others like them, leave tasks undone", 0
		return
	}
	slices.Sort(makespans)
	e.Makespan = corral.Seconds(makespans[len(makespans)/2])
	e.Cost = cost.Amount{Money: spent / cost.Money(n), Unit: q.Model.Unit()}
	e.Missed = float64(missed) / float64(n)
}

// misses reports whether an outcome is not what was asked for.
func misses(goal plan.Goal, o montecarlo.Outcome) bool {
	return !o.Finished || goal.Deadline > 0 && o.Makespan > time.Duration(goal.Deadline) ||
		goal.Budget != nil && o.Cost > goal.Budget.Money
}

// choose weighs those that have made plans, and returns the best one, -1 if there is none. One that misses the goal in
// fewer outcomes is better; of those that differ by less than one in twenty the goal's objective decides, and of equal
// ones the first is taken. The staircase is what the others are weighed against, or the first that there is.
func choose(goal plan.Goal, all []plan.Entrant) (best int) {
	best = -1
	var unit plan.Entrant
	for _, e := range all {
		if e.Why == "" {
			unit = e
			break
		}
	}
	least := 1.0
	for i := range all {
		if e := &all[i]; e.Why == "" {
			if least = min(least, e.Missed); weighed(goal) {
				e.Weight = weight(goal, *e, unit)
			}
		}
	}
	for i, e := range all {
		if e.Why != "" || e.Missed > least+0.05 {
			continue
		}
		if best < 0 || cmp.Or(byObjective(goal, e, all[best]), cmp.Compare(e.Cost.Money, all[best].Cost.Money),
			cmp.Compare(e.Makespan, all[best].Makespan)) < 0 {
			best = i
		}
	}
	return best
}

// weighed reports whether a goal weighs cost against makespan.
func weighed(goal plan.Goal) bool { return goal.Objective == plan.Tradeoff || goal.Objective == "" }

// weight is α × cost + (1 − α) × makespan, both as parts of another's.
func weight(goal plan.Goal, e, unit plan.Entrant) float64 {
	part := func(a, b float64) float64 {
		if b == 0 {
			return a // nothing costs anything, or takes any time
		}
		return a / b
	}
	return goal.Tradeoff*part(e.Cost.Money.Units(), unit.Cost.Money.Units()) +
		(1-goal.Tradeoff)*part(time.Duration(e.Makespan).Seconds(), time.Duration(unit.Makespan).Seconds())
}

// byObjective compares two by what the goal makes small.
func byObjective(goal plan.Goal, a, b plan.Entrant) int {
	switch goal.Objective {
	case plan.Makespan:
		return cmp.Compare(a.Makespan, b.Makespan)
	case plan.Cost:
		return cmp.Compare(a.Cost.Money, b.Cost.Money)
	case plan.CPUs:
		return cmp.Or(a.PeakCPUs-b.PeakCPUs, cmp.Compare(a.Cost.Money, b.Cost.Money))
	}
	return cmp.Compare(a.Weight, b.Weight)
}

// why says in a sentence why one was taken.
func why(goal plan.Goal, all []plan.Entrant, best int) string {
	w := all[best]
	by := map[plan.Objective]string{plan.Makespan: "it ends soonest", plan.Cost: "it costs least",
		plan.CPUs: "it holds the fewest cpus"}[goal.Objective]
	if by == "" {
		by = fmt.Sprintf("it weighs least by --tradeoff %g", goal.Tradeoff)
	}
	said := fmt.Sprintf("%s is taken: played in the queues as they are %s, %s for %s", w.Algorithm, by,
		round(w.Makespan), w.Cost.Brief())
	if w.Missed > 0 {
		said += fmt.Sprintf(", and misses the goal in %.0f %% of outcomes", 100*w.Missed)
	}
	return said
}

func round(d corral.Seconds) time.Duration { return time.Duration(d).Round(time.Second) }
