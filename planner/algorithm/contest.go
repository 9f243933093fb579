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
	"github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner/montecarlo"
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
		return plans[0], nil
	}
	all[best].Won = true
	won := plans[best]
	won.Contest, won.Reasons = all, append(won.Reasons, why(q.Goal, all, best))
	return won, nil
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
	slices.Sort(makespans)
	if k := len(makespans); k > 0 {
		e.Makespan = corral.Seconds(makespans[k/2])
	}
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
			e.Weight = weight(goal, *e, unit)
			least = min(least, e.Missed)
		}
	}
	for i, e := range all {
		if e.Why != "" || e.Makespan == 0 || e.Missed > least+0.05 {
			continue
		}
		if best < 0 || cmp.Or(byObjective(goal, e, all[best]), cmp.Compare(e.Weight, all[best].Weight)) < 0 {
			best = i
		}
	}
	return best
}

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
	said := ""
	for i, e := range all {
		if i != best && e.Why == "" {
			said += fmt.Sprintf("; %s %s for %s", e.Algorithm, round(e.Makespan), e.Cost.Brief())
			if e.Missed > all[best].Missed {
				said += fmt.Sprintf(", %.0f %% missed", 100*e.Missed)
			}
		}
	}
	by := map[plan.Objective]string{plan.Makespan: "the shortest makespan", plan.Cost: "the least cost",
		plan.CPUs: "the fewest cpus"}[goal.Objective]
	if by == "" {
		by = fmt.Sprintf("the least weight by a trade-off of %g", goal.Tradeoff)
	}
	w := all[best]
	return fmt.Sprintf("%s is taken, for %s of the plans that were played in the queues as they are: %s for %s%s",
		w.Algorithm, by, round(w.Makespan), w.Cost.Brief(), said)
}

func round(d corral.Seconds) time.Duration { return time.Duration(d).Round(time.Second) }
