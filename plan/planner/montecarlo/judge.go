package montecarlo

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
)

// How often plans are played to judge them. An exact share is of mostDraws outcomes, of fewer where the workflow is so
// large that they would be more than drawnTasks tasks, but of leastDraws at least: beyond mostTasks tasks plans are not
// judged, and waits alone count. A share that is 0.9 in truth is within 0.015 of it in 19 of 20 plans with 1,600
// outcomes, within 0.03 with 400, within 0.08 with 50.
const (
	mostDraws  = 1600
	leastDraws = 50
	drawnTasks = 800_000
	mostTasks  = 50_000

	batch = 100 // outcomes between two looks whether it is clear on which side of the confidence the share is
	clear = 4.0 // standard errors
)

// Draws returns how many outcomes of a workflow of so many tasks an exact share is counted in; 0: it is too large.
func Draws(tasks int) int {
	if tasks > mostTasks {
		return 0
	}
	return min(mostDraws, max(leastDraws, drawnTasks/max(1, tasks)))
}

// mostOnce is how many tasks a workflow may have so that it is played once, where one outcome tells all.
const mostOnce = 200_000

// draws is how many outcomes a share is counted in; one where nothing is left to chance.
func (m Model) draws() int {
	if len(m.Work.Tasks) <= mostOnce && m.Spread.Size == 0 &&
		!slices.ContainsFunc(m.Sites, func(s plan.Site) bool {
			return s.Waits != nil && m.Queues[[2]string{s.Name, s.Queue}] == nil
		}) {
		return 1
	}
	return cmp.Or(m.Exact, Draws(len(m.Work.Tasks)))
}

// Judge returns a planner's judge of plans for a goal with a deadline and a confidence, nil if the workflow is too
// large to be simulated often. Every plan meets the same outcomes.
func (m Model) Judge(goal plan.Goal, seed uint64) planner.Judge {
	most := m.draws()
	if most == 0 {
		return nil
	}
	return func(pl *plan.Plan, exact bool) float64 {
		enough, step := min(most, max(leastDraws, most/4)), batch
		if exact {
			enough, step = most, most
		}
		met, drawn := 0, 0
		for drawn < enough {
			n := min(step, enough-drawn)
			met += m.inTime(pl, time.Duration(goal.Deadline), n, drawn, seed)
			drawn += n
			if distant(float64(met)/float64(drawn), goal.Confidence, drawn) {
				break
			}
		}
		return float64(met) / float64(drawn)
	}
}

// distant reports whether a share of so many outcomes is clearly on one side of another.
func distant(share, from float64, outcomes int) bool {
	return math.Abs(share-from) > clear*math.Sqrt(from*(1-from)/float64(outcomes))
}

// inTime plays the outcomes from first on, and counts those that end within the deadline.
func (m Model) inTime(pl *plan.Plan, deadline time.Duration, n, first int, seed uint64) (met int) {
	m.BreakOff = deadline + time.Millisecond
	for _, o := range m.outcomes(pl, n, first, seed) {
		if o.Finished && o.Makespan <= deadline {
			met++
		}
	}
	return met
}

// Share returns the share of n outcomes of a plan that end within a deadline.
func (m Model) Share(pl *plan.Plan, deadline time.Duration, n int, seed uint64) float64 {
	return float64(m.inTime(pl, deadline, n, 0, seed)) / float64(n)
}

// WaitShare is the share of waits that a plan assumes to be no longer than planned: the median, unless a confidence is
// asked for that is not simulated.
func WaitShare(goal plan.Goal, tasks int) float64 {
	if goal.Confidence > 0 && (goal.Deadline == 0 || Draws(tasks) == 0) {
		return goal.Confidence
	}
	return 0.5
}

// Make has the planner make a plan. One that is to meet a deadline with a confidence is chosen by simulated outcomes,
// and says of how many. Errors are the planner's, and the cause with which ctx has ended.
func (m Model) Make(ctx context.Context, goal plan.Goal, opts planner.Options) (*plan.Plan, error) {
	m.ctx, opts.Context = ctx, ctx
	asked := goal.Confidence > 0 && goal.Deadline > 0
	if asked {
		opts.Judge = m.Judge(goal, opts.Seed)
	}
	pl, err := planner.Make(m.Problem, goal, opts)
	if err != nil {
		return nil, err
	}
	for q := pl; q != nil; q = q.Nearest {
		if q.Feasible {
			q.Assumed = plan.Assume(m.Problem, q, m.Spread.String())
		}
	}
	switch n := m.draws(); {
	case asked && n == 0:
		pl.Reasons = append(pl.Reasons, fmt.Sprintf("a workflow of more than %d tasks is not simulated: the "+
			"confidence counts for waits alone, each of which is planned so long that a share of %g is shorter",
			mostTasks, goal.Confidence))
	case asked && pl.Confidence != nil:
		pl.Reasons = append(pl.Reasons, fmt.Sprintf("it ends within the deadline in a share of %.3f of %d simulated "+
			"outcomes%s; runtimes err by %s", pl.Confidence.Reached, n, below(pl.Confidence), m.Spread))
	}
	return pl, nil
}

// below says how sure the candidate is that costs less.
func below(c *plan.Confidence) string {
	if c.NextCheaper == nil {
		return ", and none is cheaper"
	}
	return fmt.Sprintf(", the next cheaper one in %.3f", *c.NextCheaper)
}
