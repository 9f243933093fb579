package montecarlo

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
)

// The numbers of outcomes for judging plans. An exact share uses mostDraws outcomes, or fewer if a large workflow would
// exceed drawnTasks tasks in total, but at least leastDraws. Plans with more than mostTasks tasks are not judged; only
// waits are considered. For 19 of 20 plans with a true share of 0.9, the estimate is within 0.015 of the true share
// with 1,600 outcomes, within 0.03 with 400, and within 0.08 with 50.
const (
	mostDraws  = 1600
	leastDraws = 50
	drawnTasks = 800_000
	mostTasks  = 50_000

	batch    = 8     // outcomes until it is checked whether the share is clearly on one side; then a quarter more
	mistaken = 0.001 // bound of the probability that a share is clearly on the wrong side at one check
)

// Draws returns the number of outcomes for an exact share, given the number of tasks, or 0 if the workflow is too
// large.
func Draws(tasks int) int {
	if tasks > mostTasks {
		return 0
	}
	return min(mostDraws, max(leastDraws, drawnTasks/max(1, tasks)))
}

// mostOnce is the maximum number of tasks of a workflow that is simulated, only once, if just one outcome is possible.
const mostOnce = 200_000

// draws returns the number of outcomes for a share; it is 1 if nothing is random.
func (m Model) draws() int {
	if len(m.Work.Tasks) <= mostOnce && m.Spread.Size == 0 && len(m.Errors) == 0 &&
		!slices.ContainsFunc(m.Sites, func(s plan.Site) bool {
			return s.Waits != nil && m.Queues[[2]string{s.Name, s.Queue}] == nil
		}) {
		return 1
	}
	return cmp.Or(m.Exact, Draws(len(m.Work.Tasks)))
}

// Judge returns a planner's judge of plans for a goal with a bound and a confidence, or nil if the workflow is too
// large for repeated simulation. All plans are simulated in the same outcomes.
func (m Model) Judge(ctx context.Context, goal plan.Goal, seed uint64) planner.Judge {
	m.ctx = ctx
	most := m.draws()
	if most == 0 {
		return nil
	}
	return func(pl *plan.Plan, care planner.Care) float64 {
		enough, first := min(most, max(leastDraws, most/4)), batch
		switch {
		case m.Rough > 0:
			enough = min(most, m.Rough)
		case care != planner.Glance:
			enough = most
		}
		if care == planner.Exact {
			first = enough
		}
		judge := m
		if judge.drawn == nil {
			judge = m.Remembering()
		}
		share := 0.0
		for drawn := 0; drawn < enough; {
			drawn = min(max(first, drawn+(drawn+4*batch-1)/(4*batch)*batch), enough)
			share = meets(judge.Outcomes(pl, drawn, seed), goal)
			if distant(share, goal.Confidence, drawn) {
				break
			}
		}
		return share
	}
}

// distant reports whether a share of a number of outcomes is clearly above or below another share. The probability of a
// share at least as far away, were the other one the true share, is at most exp(−n·D), where D is the divergence of the
// two shares (Hoeffding: Probability inequalities for sums of bounded random variables, Journal of the American
// Statistical Association 58, 1963, theorem 1).
func distant(share, from float64, outcomes int) bool {
	part := func(a, b float64) float64 {
		if a == 0 {
			return 0
		}
		return a * math.Log(a/b)
	}
	return float64(outcomes)*(part(share, from)+part(1-share, 1-from)) > -math.Log(mistaken)
}

// Share returns the share of n outcomes of a plan that end within a deadline.
func (m Model) Share(pl *plan.Plan, deadline time.Duration, n int, seed uint64) float64 {
	return meets(m.Outcomes(pl, n, seed), plan.Goal{Deadline: corral.Seconds(deadline)})
}

// WaitShare returns the quantile of waits that a plan assumes: the median, or the confidence if it is requested but not
// simulated.
func WaitShare(goal plan.Goal, tasks int) float64 {
	if goal.Confidence > 0 && (!goal.Bounded() || Draws(tasks) == 0) {
		return goal.Confidence
	}
	return 0.5
}

// Make returns the plan of the planner. A plan with a bound and a confidence is chosen by simulated outcomes, and
// reports their number. An error is either an error of the planner or the cause of the cancellation of ctx.
func (m Model) Make(ctx context.Context, goal plan.Goal, opts planner.Options) (*plan.Plan, error) {
	ballast()
	m.ctx, opts.Context = ctx, ctx
	if m.Playable() {
		opts.Play = m.Play
	}
	asked := goal.Confidence > 0 && goal.Bounded()
	if asked {
		opts.Judge = m.Judge(ctx, goal, opts.Seed)
	}
	pl, err := planner.Make(m.Problem, goal, opts)
	if err != nil {
		return nil, err
	}
	if near := m.nearly(pl, goal, opts); near != nil {
		near.Goal, near.LowerBound, near.Front = goal, pl.LowerBound, pl.Front
		pl = near
	}
	if pl.Feasible && opts.Play != nil && opts.Slots == nil && m.Rough == 0 &&
		len(m.Work.Tasks) <= mostTasks {
		was := pl.Point
		pl, pl.Confidence = m.safer(pl, opts)
		if at := slices.Index(pl.Front, was); at >= 0 {
			pl.Front = slices.Clone(pl.Front)
			pl.Front[at] = pl.Point
		}
	} else if pl.Feasible && pl.Confidence != nil && m.Rough == 0 {
		c := *pl.Confidence
		c.Reached, pl.Confidence = opts.Judge(pl, planner.Exact), &c
	}
	for q := pl; q != nil; q = q.Nearest {
		if q.Feasible {
			q.Assumed = plan.Assume(m.Problem, q, m.Spread.String())
		}
	}
	switch n := len(m.Work.Tasks); {
	case n > mostPlayed:
		pl.Reasons = append(pl.Reasons, fmt.Sprintf("workflows of more than %d tasks are not executed in advance: the "+
			"times and the cost are those of the planner's schedule", mostPlayed))
	case n > planner.PlayedFront && pl.Feasible:
		pl.Reasons = append(pl.Reasons, fmt.Sprintf("of workflows of more than %d tasks only the plan is executed in "+
			"advance: the other points of the front are those of the planner's schedule", planner.PlayedFront))
	}
	switch n := m.draws(); {
	case asked && n == 0:
		pl.Reasons = append(pl.Reasons, fmt.Sprintf("workflows of more than %d tasks are not simulated: the "+
			"confidence applies only to waits, for each of which the plan assumes the quantile %g",
			mostTasks, goal.Confidence))
	case asked && pl.Confidence != nil:
		pl.Reasons = append(pl.Reasons, m.Reason(goal, pl.Confidence))
	}
	return pl, nil
}

// Reason returns the sentence about the confidence of a plan.
func (m Model) Reason(goal plan.Goal, c *plan.Confidence) string {
	return fmt.Sprintf("it meets %s in a share of %.3f of %d simulated outcomes%s; errors: %s", goal.BoundNames(),
		c.Reached, m.draws(), below(c), m.Errors.Law(m.Spread.String()))
}

// nearly returns the nearest plan of an answer if it reaches the goal with other walltimes, or nil.
func (m Model) nearly(pl *plan.Plan, goal plan.Goal, opts planner.Options) *plan.Plan {
	if pl.Feasible || pl.Nearest == nil || !goal.Bounded() || goal.Confidence > 0 || opts.Play == nil ||
		opts.Slots != nil || len(m.Work.Tasks) > mostTasks {
		return nil
	}
	if found := m.stretch(pl.Nearest, goal, opts.Seed); goal.Within(point(found)) {
		return found
	}
	return nil
}

// below describes the confidence of the next cheaper candidate.
func below(c *plan.Confidence) string {
	if c.NextCheaper == nil {
		return ", and none is cheaper"
	}
	return fmt.Sprintf(", the next cheaper one in %.3f", *c.NextCheaper)
}
