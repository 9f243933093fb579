package montecarlo

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/validator"
)

// Walltimes. A task that is running when its pilot's walltime ends has to start over, perhaps on no pilot at all. A
// longer walltime is safer and costs nothing by itself, because a pilot without work leaves. But a pilot that requests
// more may wait longer, and walltimes decide which pilots are filled first. So several walltimes are tried, each with
// the wait predicted for it. The one with the lowest objective per outcome that reaches the goal is taken.

// stretches are the walltimes to try, in multiples of the time for which a pilot is needed. Longer ones are not tried:
// the records of few sites show how much longer a pilot waits for them.
var stretches = []float64{1, 1.5, 2, 4}

const (
	enough                = 0.005  // relative difference that justifies a longer walltime
	triedWork             = 10_000 // see oddsWork
	leastTried, mostTried = 10, 60
)

// safer returns a plan with the walltimes that suit it best, unless they lower its confidence, and its exact
// confidence.
func (m Model) safer(pl *plan.Plan, opts planner.Options) (*plan.Plan, *plan.Confidence) {
	longer := m.stretch(pl, pl.Goal, opts.Seed)
	if pl.Confidence == nil {
		return longer, nil
	}
	c := *pl.Confidence
	if c.Reached = opts.Judge(pl, planner.Exact); longer == pl {
		return pl, &c
	}
	if reached := opts.Judge(longer, planner.Exact); reached >= c.Reached {
		c.Reached = reached
		return longer, &c
	}
	return pl, &c
}

// stretch returns the plan with the walltimes that suit it best for a goal. The plan must have been executed, see Play.
func (m Model) stretch(pl *plan.Plan, goal plan.Goal, seed uint64) *plan.Plan {
	if !pl.Feasible || len(pl.Pilots) == 0 || slices.ContainsFunc(pl.Pilots, func(q plan.Pilot) bool {
		return m.Site(q.Site, q.Queue).Room != nil // its start depends on its walltime
	}) {
		return pl
	}
	drawn := m
	if drawn.Spread.Size == 0 { // estimates are never exact
		drawn.Spread, drawn.drawn = DefaultSpread, nil
	}
	n := oddsDraws(pl, len(m.Work.Tasks), triedWork, leastTried, mostTried)
	best, least := pl, math.Inf(1)
	var before *plan.Plan
	for _, by := range stretches {
		q := m.stretched(pl, goal, by)
		if q == nil || before != nil && equalWalltimes(q, before) {
			continue
		}
		before = q
		each := worth(q, pl, goal) / max(0.5, float64(n)*meets(drawn.Outcomes(q, n, seed), goal))
		if each < least*(1-enough) {
			best, least = q, each
		}
	}
	if m.context().Err() != nil {
		return pl
	}
	return best
}

func equalWalltimes(a, b *plan.Plan) bool {
	return slices.EqualFunc(a.Pilots, b.Pilots, func(q, r plan.Pilot) bool { return q.Walltime == r.Walltime })
}

// stretched returns a plan as it is executed with other walltimes; nil if it misses its goal then, or ends noticeably
// later or costs noticeably more.
func (m Model) stretched(pl *plan.Plan, goal plan.Goal, by float64) *plan.Plan {
	longer := *pl
	longer.Pilots = slices.Clone(pl.Pilots)
	var late corral.Seconds
	longest := m.longest()
	for i := range longer.Pilots {
		q := &longer.Pilots[i]
		s := m.Site(q.Site, q.Queue)
		before := s.Wait(s.ShapeOf(*q)) // the plan may assume a longer one
		throughout := q.Throughout()
		if q.Walltime = corral.Seconds(m.walltime(s, *q, by, longest(s, q.Host()))); throughout {
			q.MinStay = q.Walltime
		}
		q.Submit -= corral.Seconds(s.Wait(s.ShapeOf(*q)) - before)
		late = max(late, goal.NotBefore-q.Submit)
	}
	for i := range longer.Pilots {
		q := &longer.Pilots[i]
		for _, at := range []*corral.Seconds{&q.Submit, &q.Start, &q.Ready, &q.End} {
			*at += late
		}
	}
	longer.Schedule = slices.Clone(pl.Schedule)
	for i := range longer.Schedule {
		longer.Schedule[i].Start += late
		longer.Schedule[i].End += late
	}
	played, ok := m.Play(&longer)
	if !ok || !goal.Within(point(played)) || validator.Check(m.Problem, played) != nil {
		return nil
	}
	return played
}

// worth returns a plan's value of a goal's objective relative to that of another plan.
func worth(pl, than *plan.Plan, goal plan.Goal) float64 {
	alpha, ok := goal.Alpha()
	if !ok {
		return float64(pl.PeakCPUs) / float64(max(1, than.PeakCPUs))
	}
	a, b := point(pl), point(than)
	if b.Cost == 0 { // at no price, less is better nevertheless
		a.Cost, b.Cost = microHours(pl), microHours(than)
	}
	return plan.Weigh(alpha, []plan.Candidate{{Point: b}}).Of(a)
}

// longest returns a function that returns the runtime of the longest task that fits on a host of a site.
func (m Model) longest() func(s *plan.Site, host corral.Resources) time.Duration {
	type place struct {
		site *plan.Site
		host corral.Resources
	}
	known := map[place]time.Duration{}
	return func(s *plan.Site, host corral.Resources) time.Duration {
		d, ok := known[place{s, host}]
		for i := 0; !ok && i < len(m.Work.Tasks); i++ {
			if t := &m.Work.Tasks[i]; t.Needs.FitIn(host) {
				d = max(d, s.Takes(*t))
			}
		}
		known[place{s, host}] = d
		return d
	}
}

func microHours(pl *plan.Plan) cost.Money { return cost.Money(1e6 * pl.CoreHours) }

func point(pl *plan.Plan) cost.Point {
	return cost.Point{Makespan: time.Duration(pl.Makespan), Cost: pl.Cost.Money}
}

// walltime returns the walltime of a pilot that is a multiple of the time for which it is needed, within the limits of
// its site. It suffices for the longest task that fits on one of the pilot's hosts.
func (m Model) walltime(s *plan.Site, q plan.Pilot, by float64, longest time.Duration) time.Duration {
	held, limit := time.Duration(q.End-q.Start), s.Walltime
	for _, c := range s.Closed { // a pilot starts only if its walltime ends before the maintenance
		if c.From > time.Duration(q.Start) {
			limit = min(limit, c.From-time.Duration(q.Start))
		}
	}
	need := max(time.Duration(by*float64(held)), s.Overhead+m.Cluster.Hop+longest) + s.Margin
	return min(plan.RoundWalltime(need), limit)
}
