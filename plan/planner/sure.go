package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A Judge returns the share of outcomes in which a plan meets its goal's deadline and budget, judged with the given
// care. A Judge must be deterministic.
type Judge func(pl *plan.Plan, care Care) float64

// A Care is the number of outcomes by which a plan is judged.
type Care uint8

const (
	Glance Care = iota // a part of them, or fewer if it is clear whether the share is above or below the confidence
	Decide             // all of them, or fewer if it is clear
	Exact              // all of them
)

// patience holds the quantiles of waits that plans with a confidence assume in addition to the requested confidence. A
// plan that assumes longer waits requests its later pilots earlier: this makes the plan safer, but more expensive if
// the pilots start early.
var patience = []float64{0.5, 0.75}

// mostPatient is the maximum number of tasks of a workflow for which more than one quantile is tried.
const mostPatient = 100_000

// unsure reports whether a plan has to meet a deadline or a budget with a confidence and a judge is available.
func unsure(p *planning) bool { return p.Goal.Confidence > 0 && p.Goal.Bounded() && p.judge != nil }

// reserve returns the share by which walltimes are extended, so that a pilot remains available if tasks take longer
// than estimated: tasks are killed at the end of a walltime and have to start over. The reserve costs nothing unless it
// is used, because a pilot without work leaves. Plans with a confidence have a larger reserve.
func reserve(p *planning) float64 {
	if unsure(p) {
		return 3
	}
	return 0.5
}

// patient returns additional outcomes for other quantiles of the waits. It returns none if the distribution of waits is
// not known.
func patient(p *planning) (all []outcome) {
	spread := slices.ContainsFunc(p.Sites, func(s plan.Site) bool { return s.Waits != nil })
	if !unsure(p) || !spread || len(p.Work.Tasks) > mostPatient {
		return nil
	}
	for _, share := range append(slices.Clone(patience), p.Goal.Confidence, (1+p.Goal.Confidence)/2) {
		other := *p
		other.Sites = slices.Clone(p.Sites)
		for i := range other.Sites {
			s := &p.Sites[i]
			other.Sites[i].Wait = func(shape plan.Shape) time.Duration {
				return max(s.Wait(shape), s.Quantile(shape, share))
			}
		}
		all = append(all, other.outcomes(other.candidates())...)
	}
	return all
}

// A ladder holds the admissible outcomes of one kind, best by the goal's objective first. Each is faster than all
// before it or, for a goal without a deadline, cheaper, and should therefore also be safer.
type ladder struct {
	p      *planning
	rungs  []outcome
	places []int           // of the rungs, among all outcomes
	share  map[int]float64 // share of outcomes within the goal, per carefully judged rung
	spare  bool            // another ladder has a sufficient rung
}

// sure returns the best outcome that meets the goal with the required confidence. If no outcome does, ok is false, and
// the outcome is the safest one judged. At least one outcome must meet the goal according to estimates.
//
// There are two ladders. Pilots that leave when they have no work are cheaper, but where tasks take longer than
// estimated, they leave before the last tasks. Pilots that stay throughout are safer. They are judged first, so that of
// the others only better ones have to be judged.
func sure(p *planning, all []outcome) (best outcome, c *plan.Confidence, ok bool) {
	stays := func(o outcome) bool { return o.candidate.stays() == throughout }
	held := newLadder(p, all, stays)
	k, c, ok := held.sure()
	if ok {
		best = held.rungs[k]
		all = p.better(all, held.places[k], best)
	}
	l := newLadder(p, all, func(o outcome) bool { return !stays(o) })
	l.spare = ok
	switch i, d, reaches := l.sure(); {
	case reaches && ok:
		if first, _ := p.best([]outcome{best, l.rungs[i]}); first == 0 {
			return best, c, true
		}
		return l.rungs[i], d, true
	case ok:
		return best, c, true
	case c == nil || d != nil && (reaches || d.Reached > c.Reached):
		return l.rungs[i], d, reaches
	}
	return held.rungs[k], c, false
}

// better returns the outcomes that are better for the goal than the kth, which has been executed since.
func (p *planning) better(all []outcome, k int, executed outcome) (some []outcome) {
	all = slices.Clone(all)
	all[k] = executed
	for _, i := range ranked(p.Goal, all) {
		if i == k {
			break
		}
		some = append(some, all[i])
	}
	return some
}

// newLadder selects the outcomes of a kind that are within the sites' limits and, if there is a deadline, the budget,
// except those that are neither better nor safer than another.
func newLadder(p *planning, all []outcome, of func(outcome) bool) *ladder {
	free := p.Goal // of the bound that the ladder climbs towards
	safer := func(a, b outcome) bool { return a.Makespan < b.Makespan }
	if free.Deadline > 0 {
		free.Deadline = 0
	} else {
		free.Budget = nil
		safer = func(a, b outcome) bool { return a.Cost.Money < b.Cost.Money }
	}
	l := &ladder{p: p, share: map[int]float64{}}
	for _, k := range ranked(free, all) {
		if n := len(l.rungs); of(all[k]) && (n == 0 || safer(all[k], l.rungs[n-1])) {
			l.rungs, l.places = append(l.rungs, all[k]), append(l.places, k)
		}
	}
	return l
}

// reaches reports whether a rung has the required confidence.
func (l *ladder) reaches(k int) bool { return l.judged(k, Glance) >= l.p.Goal.Confidence }

func (l *ladder) judged(k int, care Care) float64 {
	if share, ok := l.share[k]; ok {
		return share
	}
	if l.p.ctx.Err() != nil {
		return 0 // the result is not used
	}
	share := 0.0
	if pl := l.plan(k); pl != nil {
		share = l.p.judge(pl, care)
	}
	if care != Glance {
		l.share[k] = share
	}
	return share
}

// plan makes the plan of a rung, or returns nil if its execution leaves a task undone or misses the goal.
func (l *ladder) plan(k int) *plan.Plan {
	o := &l.rungs[k]
	if o.of.play == nil {
		return o.sketch()
	}
	if !o.played && o.limit == "" {
		o.execute()
	}
	if excess(l.p.Goal, *o) != "" {
		return nil
	}
	pl, _ := o.of.play(o.sketch())
	return pl
}

// climb returns the first rung with the required confidence, or -1; first is the first rung that meets the goal
// according to estimates. It bisects between an insufficient and a sufficient rung as if confidence increased along the
// ladder. This is not always true; it is guaranteed that the returned rung is sufficient, and the rung before it is
// not as far as a quarter of the outcomes show.
func (l *ladder) climb(first int) int {
	low, high := first-1, len(l.rungs)-1
	for high >= first && !l.reaches(high) { // the last is not always the safest: the fastest may need the most pilots
		if high--; len(l.rungs)-high > topRungs {
			high = first - 1
		}
	}
	if high < first { // no rung passed the quick check; one that nearly suffices may pass the careful one
		if at := l.surest(first); !l.spare || l.judged(at, Glance) >= l.p.Goal.Confidence-nearly {
			return l.settle(at, first)
		}
		return -1
	}
	for high-low > 1 {
		if mid := (low + high) / 2; l.reaches(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return l.settle(high, first)
}

// settle returns the first rung from high on that suffices when judged carefully. If the rungs directly before that
// rung also suffice, it returns the first of them. It returns -1 if no rung suffices.
func (l *ladder) settle(high, first int) int {
	for high < len(l.rungs) && l.judged(high, Decide) < l.p.Goal.Confidence {
		high++
	}
	for high < len(l.rungs) && high > first && l.reaches(high-1) && l.judged(high-1, Decide) >= l.p.Goal.Confidence {
		high--
	}
	if high == len(l.rungs) {
		return -1
	}
	return high
}

// topRungs is the number of last rungs to judge before the search fails. nearly is the greatest difference from the
// required confidence at which a quick check is not trusted if there is another plan.
const (
	topRungs = 4
	nearly   = 0.05
)

// sure returns the best rung that has the required confidence. If no rung has, ok is false and the rung is the safest
// one judged; c is nil if no rung meets the goal according to estimates.
func (l *ladder) sure() (at int, c *plan.Confidence, ok bool) {
	first := slices.IndexFunc(l.rungs, func(o outcome) bool { return excess(l.p.Goal, o) == "" })
	if first < 0 {
		return -1, nil, false
	}
	at = l.climb(first)
	if ok = at >= 0; !ok && l.spare {
		return -1, nil, false
	}
	if !ok { // a slower rung than those tried may be surer
		at = l.surest(first)
		ok = l.judged(at, Decide) >= l.p.Goal.Confidence
	}
	c = &plan.Confidence{Asked: l.p.Goal.Confidence, Reached: l.judged(at, Decide)}
	if !ok && l.p.ctx.Err() == nil {
		if pl := l.plan(at); pl != nil {
			c.Reached = l.p.judge(pl, Exact)
		}
	}
	if at > 0 && ok {
		below := l.judged(at-1, Glance)
		c.NextCheaper = &below
	}
	return at, c, ok
}

// surest returns, among the last rungs, the one with the largest share of outcomes within the goal.
func (l *ladder) surest(first int) int {
	best := len(l.rungs) - 1
	for k := best - 1; k >= max(first, len(l.rungs)-topRungs); k-- {
		if l.judged(k, Glance) > l.judged(best, Glance) {
			best = k
		}
	}
	return best
}

// unsure returns the answer for an unreachable confidence, with the safest plan found.
func (p *planning) unsure(o outcome, c *plan.Confidence, all []outcome) *plan.Plan {
	pl := &plan.Plan{Workflow: p.Work.Name, Goal: p.Goal, Alternatives: plan.Alternatives{Front: front(all),
		Nearest: judged(o, c)}}
	remedy := "without --confidence only estimates are used"
	if share := floor(c.Reached); share > 0 {
		remedy = fmt.Sprintf("--confidence %g is within reach", share)
	}
	within := "ends within " + p.Goal.Deadline.String()
	if p.Goal.Deadline == 0 {
		within = fmt.Sprintf("costs %s or less", *p.Goal.Budget)
	}
	pl.Reasons = []string{fmt.Sprintf("no plan %s in a share of %g of simulated outcomes: the safest does in %.3f; %s",
		within, c.Asked, c.Reached, remedy)}
	return pl
}

// judged makes the plan of an outcome, with its confidence, which is nil if it is not known.
func judged(o outcome, c *plan.Confidence) *plan.Plan {
	pl := o.of.finish(o)
	pl.Confidence = c
	return pl
}

// floor rounds a share down to hundredths, so that a suggested confidence is really feasible.
func floor(share float64) float64 { return float64(int(share*100)) / 100 }
