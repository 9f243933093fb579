package planner

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/corral-pilot/corral/plan"
)

// A Play executes a plan with waits and runtimes as estimated, and returns it with the times of its pilots and tasks,
// and its figures, as they turn out. ok is false if a task is left undone. A Play must be deterministic, and may be
// called concurrently.
type Play func(pl *plan.Plan) (played *plan.Plan, ok bool)

// undone is the limit of an outcome whose execution leaves a task undone.
const undone = "its pilots leave before the last task"

// playedTasks limits the executions for one plan: their number × the number of tasks. leastPlays is their minimum. For
// workflows of more than quickTasks tasks, which take a noticeable time, there are at most frontPlays.
const (
	playedTasks = 400_000
	leastPlays  = 3
	quickTasks  = 2000
	frontPlays  = 5 * fullFront
)

// PlayedFront is the maximum number of tasks for which the whole front is executed. For larger workflows, only the best
// outcome is executed and, if it breaks a bound of the goal then, the next one; the other points of the front keep the
// figures of their list schedules.
const PlayedFront = 50_000

// witness executes the outcomes that matter, the best one for the goal and those of the front, and replaces their
// figures by those of the execution, after which others may matter. An execution seldom ends sooner or costs less than
// its list schedule, so the outcomes that were never the best need none, unless no outcome reaches the goal: then those
// that almost do are executed, too. If a workflow is so large that some outcomes that matter cannot be executed, they
// are removed.
func (p *planning) witness(all []outcome) []outcome {
	if p.play == nil {
		return all
	}
	for left := p.plays(); left > 0 && p.ctx.Err() == nil; {
		due, settled := p.unplayed(all)
		if !settled && len(due) == 0 {
			due = p.almost(all)
		}
		if len(due) == 0 || settled && len(p.all) > PlayedFront {
			return all
		}
		due = some(due, left)
		if k, ok := p.soonest(all); left == 1 && ok {
			due = []int{k}
		}
		left -= len(due)
		var wg sync.WaitGroup
		turn := make(chan struct{}, runtime.GOMAXPROCS(0))
		for _, k := range due {
			turn <- struct{}{}
			wg.Go(func() {
				all[k].execute()
				<-turn
			})
		}
		wg.Wait()
	}
	return slices.DeleteFunc(all, func(o outcome) bool { return !o.played && o.limit == "" })
}

// plays returns the maximum number of executions.
func (p *planning) plays() int {
	n := max(leastPlays, playedTasks/max(1, len(p.all)))
	if len(p.all) > quickTasks {
		n = min(n, frontPlays)
	}
	return n
}

// soonest returns, if no executed outcome reaches the goal, the outcome to execute last: the one with the largest
// reserve before the deadline.
func (p *planning) soonest(all []outcome) (best int, ok bool) {
	best = -1
	for k, o := range all {
		switch {
		case excess(p.Goal, o) != "":
		case o.played:
			return 0, false
		case best < 0 || o.Makespan < all[best].Makespan:
			best = k
		}
	}
	return best, best >= 0
}

// unplayed returns the outcomes to execute next: the best one or, if its figures are known, those of the front. settled
// reports whether the best one has been executed.
func (p *planning) unplayed(all []outcome) (due []int, settled bool) {
	k, ok := p.best(all)
	if ok && !all[k].played {
		return []int{k}, false
	}
	for _, k := range frontier(all) {
		if !all[k].played {
			due = append(due, k)
		}
	}
	return due, ok
}

// almost returns, if no outcome reaches the goal, the next outcomes to execute in the hope that one does: of those that
// exceed its bounds by at most 2 % according to their list schedules, the nearest.
func (p *planning) almost(all []outcome) (due []int) {
	const little, few = 1.02, 4
	beyond := func(o *outcome) (by float64) {
		if p.Goal.Deadline > 0 {
			by = float64(o.Makespan) / float64(p.Goal.Deadline)
		}
		if p.Goal.Budget != nil && p.Goal.Budget.Money > 0 {
			by = max(by, float64(o.Cost.Money)/float64(p.Goal.Budget.Money))
		}
		return by
	}
	for k := range all {
		if o := &all[k]; !o.played && o.limit == "" && o.breach == "" && beyond(o) <= little {
			due = append(due, k)
		}
	}
	slices.SortStableFunc(due, func(i, j int) int { return cmp.Compare(beyond(&all[i]), beyond(&all[j])) })
	return due[:min(few, len(due))]
}

// some returns at most n elements of a list, evenly spaced.
func some(list []int, n int) []int {
	if len(list) <= n {
		return list
	}
	picked := make([]int, n)
	for i := range picked {
		picked[i] = list[i*len(list)/n]
	}
	return picked
}

// sketch makes the plan of an outcome, without a schedule.
func (o *outcome) sketch() *plan.Plan {
	_, s := o.of.evaluate(o.candidate)
	pl := o.of.draft(s, o.slack)
	o.of.measure(o.candidate, pl)
	return pl
}

// execute replaces the figures of the outcome by those of its execution.
func (o *outcome) execute() {
	played, ok := o.of.play(o.sketch())
	if !ok {
		o.limit = undone
		return
	}
	was := *o
	*o = o.of.measure(o.candidate, played)
	o.slack, o.late, o.schedule, o.played = was.slack, was.late, nil, true
	if len(o.of.all) > PlayedFront {
		o.executed = played // another execution would take seconds
	}
}
