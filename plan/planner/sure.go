package planner

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A Judge returns the share of outcomes in which a plan meets its goal's deadline. Not exact, it may stop as soon as it
// is clear on which side of the goal's confidence the share is. The same plan must always get the same answer.
type Judge func(pl *plan.Plan, exact bool) float64

// patience are the shares of waits that plans with a confidence assume, beside the one asked for. One that assumes
// longer waits asks for its later pilots earlier: that makes it surer, and dearer where they come early.
var patience = []float64{0.5, 0.75}

// mostPatient is how many tasks a workflow may have so that more than one share of waits is tried.
const mostPatient = 100_000

// unsure reports whether a plan has to meet a deadline with a confidence, and can be judged.
func unsure(p *planning) bool {
	return p.Goal.Confidence > 0 && p.Goal.Deadline > 0 && p.judge != nil
}

// reserve is what is added to walltimes, as a share of the time that a pilot is to be held, so that it stays when tasks
// take longer than estimated: tasks are cut at the end of a walltime and have to begin again. It costs nothing unless
// it is used, because a pilot without work leaves. Plans with a confidence have more of it.
func reserve(p *planning) float64 {
	if unsure(p) {
		return 1
	}
	return 0.5
}

// patient returns what is planned when other shares of the waits are assumed, besides what is planned anyway. Where the
// waits are not spread that is nothing.
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

// A ladder is what may be taken, best by the goal's objective first. Each is sooner than all before it, so that each is
// surer as well, as far as estimates tell.
type ladder struct {
	p     *planning
	rungs []outcome
	share map[int]float64 // of outcomes within the deadline, of those that were judged exactly
}

// newLadder takes what keeps the sites' limits and the budget, without what is neither better nor sooner than another.
func newLadder(p *planning, all []outcome) *ladder {
	anyTime := p.Goal
	anyTime.Deadline = 0
	within := slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return excess(anyTime, o) != "" })
	l := &ladder{p: p, share: map[int]float64{}}
	if len(within) == 0 {
		return l
	}
	slices.SortStableFunc(within, order(p.Goal, within))
	for _, o := range within {
		if n := len(l.rungs); n == 0 || o.Makespan < l.rungs[n-1].Makespan {
			l.rungs = append(l.rungs, o)
		}
	}
	return l
}

// reaches reports whether a rung is as sure as was asked for.
func (l *ladder) reaches(k int) bool { return l.judged(k, false) >= l.p.Goal.Confidence }

func (l *ladder) judged(k int, exact bool) float64 {
	if share, ok := l.share[k]; ok {
		return share
	}
	if l.p.ctx.Err() != nil {
		return 0 // it does not matter any more
	}
	share := l.p.judge(l.sketch(k), exact)
	if exact {
		l.share[k] = share
	}
	return share
}

// sketch makes the plan of a rung, without its witness.
func (l *ladder) sketch(k int) *plan.Plan {
	o := l.rungs[k]
	_, s := o.of.evaluate(o.candidate)
	pl := o.of.draft(s, o.slack)
	o.of.measure(o.candidate, pl)
	return pl
}

// climb returns the first rung that is sure enough, -1 if none is; first is the first that meets the deadline by its
// estimates. It halves what is left between one that is sure enough and one that is not, as if each were surer than
// those before it. That is not quite so; what is promised is that the one it returns is sure enough, and that the one
// before it is not.
func (l *ladder) climb(first int) int {
	low, high := first-1, len(l.rungs)-1
	for high >= first && !l.reaches(high) { // the soonest is not always the surest: it may need the most pilots
		if high--; len(l.rungs)-high > topRungs {
			high = first - 1
		}
	}
	if high < first { // at a glance none is; of those that are nearly, one may be
		return l.settle(l.surest(first), first)
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

// settle returns the first rung from high on that is sure enough when it is judged exactly, or one before it of which
// that is true, too, and of the one before not; -1 if there is none.
func (l *ladder) settle(high, first int) int {
	for high < len(l.rungs) && l.judged(high, true) < l.p.Goal.Confidence {
		high++
	}
	for high < len(l.rungs) && high > first && l.judged(high-1, true) >= l.p.Goal.Confidence {
		high--
	}
	if high == len(l.rungs) {
		return -1
	}
	return high
}

// topRungs is how many of the soonest are judged before it is said that none is sure enough.
const topRungs = 4

// sure returns the best outcome that meets the deadline with the confidence that was asked for. If none does, ok is
// false, and the outcome is the surest of those that were judged. Some outcome must meet the deadline by its estimates.
func (l *ladder) sure() (best outcome, c *plan.Confidence, ok bool) {
	first := slices.IndexFunc(l.rungs, func(o outcome) bool { return o.Makespan <= l.p.Goal.Deadline })
	at := l.climb(first)
	if ok = at >= 0; !ok {
		at = l.surest(first)
	}
	c = &plan.Confidence{Asked: l.p.Goal.Confidence, Reached: l.judged(at, true)}
	if at > 0 && ok {
		below := l.judged(at-1, true)
		c.NextCheaper = &below
	}
	return l.rungs[at], c, ok
}

// surest returns which of the soonest has the largest share of outcomes within the deadline.
func (l *ladder) surest(first int) int {
	best := len(l.rungs) - 1
	for k := best - 1; k >= max(first, len(l.rungs)-topRungs); k-- {
		if l.judged(k, true) > l.judged(best, true) {
			best = k
		}
	}
	l.judged(best, true)
	return best
}

// unsure is the answer to a confidence that no plan reaches: the surest that is known.
func (l *ladder) unsure(o outcome, c *plan.Confidence, all []outcome) *plan.Plan {
	p := l.p
	pl := &plan.Plan{Workflow: p.Work.Name, Goal: p.Goal, Alternatives: plan.Alternatives{Front: front(all),
		Nearest: o.of.finish(o)}}
	pl.Nearest.Confidence = c
	remedy := "without --confidence it is planned by estimates alone"
	if share := floor(c.Reached); share > 0 {
		remedy = fmt.Sprintf("--confidence %g is within reach", share)
	}
	pl.Reasons = []string{fmt.Sprintf("no plan ends within %s in a share of %g of simulated outcomes: the surest does "+
		"in %.3f; %s", p.Goal.Deadline, c.Asked, c.Reached, remedy)}
	return pl
}

// floor rounds a share down to hundredths, so that what is offered is really within reach.
func floor(share float64) float64 { return float64(int(share*100)) / 100 }
