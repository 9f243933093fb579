package planner

// The bounds of a goal: the planner searches within them, and every outcome, planned or executed, is measured against
// them. If no plan is within all of them, the planner searches again without one at a time.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/plan"
)

// mostHosts returns the maximum number of hosts of the given size to try: as many as can be of use, and as many as the
// goal allows beside the present pilots.
func (p *planning) mostHosts(cpus int) int {
	n := (p.most + cpus - 1) / cpus
	if p.Goal.MaxCPUs > 0 {
		n = min(n, max(0, p.Goal.MaxCPUs-presentCPUs(p.Present))/cpus)
	}
	return n
}

// hold opens the only hold of a static line.
func (l *line) hold() {
	l.static, l.keep = true, plan.Unbounded
	if h, ok := l.fresh(l.ready); ok {
		l.holds = []hold{h}
	}
}

// staysThroughout extends the holds of static lines with tasks to the end of the schedule, and drops the lines without
// tasks. It reports whether the lines' pilots can stay that long.
func (s *schedule) staysThroughout() bool {
	used := make([]bool, len(s.lines))
	for i, at := range s.line {
		used[at] = used[at] || s.hold[i] >= 0
	}
	for i, l := range s.lines {
		switch {
		case !l.static:
		case !used[i]:
			l.holds = nil
		case l.holds[0].latest < s.makespan:
			return false
		default:
			l.holds[0].To = s.makespan
		}
	}
	return true
}

// A restriction is one of the goal's bounds.
type restriction struct {
	flag  string
	value func(goal plan.Goal) string   // for messages; empty: the goal does not have the bound
	of    func(o outcome) int           // the value that allows an outcome; nil: the bound is not a number
	set   func(goal *plan.Goal, to int) // 0 removes the bound
}

var restrictions = []restriction{
	{"--max-cpus", func(g plan.Goal) string { return number(g.MaxCPUs) },
		func(o outcome) int { return o.beside }, func(g *plan.Goal, to int) { g.MaxCPUs = to }},
	{"--max-pilots", func(g plan.Goal) string { return number(g.MaxPilots) },
		func(o outcome) int { return o.pilots }, func(g *plan.Goal, to int) { g.MaxPilots = to }},
	{"--static", func(g plan.Goal) string { return map[bool]string{true: "--static"}[g.Static] },
		nil, func(g *plan.Goal, _ int) { g.Static = false }},
	{"--not-before", func(g plan.Goal) string {
		if g.NotBefore == 0 {
			return ""
		}
		return g.NotBefore.String()
	}, nil, func(g *plan.Goal, _ int) { g.NotBefore = 0 }},
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// said returns the bound as a flag with its value, or "" if the goal does not have it.
func (b restriction) said(goal plan.Goal) string {
	switch v := b.value(goal); v {
	case "", b.flag:
		return v
	default:
		return b.flag + " " + v
	}
}

// withBounds returns the bounds of a goal for messages, such as " with --max-cpus 4 and --static", or "".
func withBounds(goal plan.Goal) string {
	var all []string
	for _, b := range restrictions {
		if said := b.said(goal); said != "" {
			all = append(all, said)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " with " + strings.Join(all, " and ")
}

// breach returns the bound of the goal that a plan's pilots break, or "".
func (p *planning) breach(pl *plan.Plan, beside int) string {
	g := p.Goal
	switch {
	case g.MaxCPUs > 0 && len(pl.Pilots) > 0 && beside > g.MaxCPUs:
		return fmt.Sprintf("--max-cpus %d: it holds %d", g.MaxCPUs, beside)
	case g.MaxPilots > 0 && len(pl.Pilots) > g.MaxPilots:
		return fmt.Sprintf("--max-pilots %d: it requests %d", g.MaxPilots, len(pl.Pilots))
	case slices.ContainsFunc(pl.Pilots, func(q plan.Pilot) bool { return q.Submit < g.NotBefore }):
		return "--not-before: it requests a pilot earlier"
	case g.Static && slices.ContainsFunc(pl.Pilots, func(q plan.Pilot) bool {
		return q.Submit > g.NotBefore || q.End < pl.Makespan || q.CPUs != pl.Pilots[0].CPUs
	}):
		return "--static: a pilot starts later or leaves earlier"
	}
	return ""
}

// relaxed returns the answer for a goal that is within reach if one of its bounds, or all of them, are relaxed, or nil.
// An answer with the goal's confidence is preferred to one that reaches only the rest of the goal. If the deadline and
// the budget are also out of reach, they are relaxed, too; then the confidence is not judged.
func (p *planning) relaxed(problem plan.Problem, opts Options) *plan.Plan {
	if p.Goal.Bounds == (plan.Bounds{}) {
		return nil
	}
	anyTime := p.Goal
	anyTime.Deadline, anyTime.Budget = 0, nil
	if anyTime.Objective == plan.CPUs {
		anyTime.Objective = plan.Cost
	}
	together := restriction{flag: "them", set: func(g *plan.Goal, _ int) { g.Bounds = plan.Bounds{} }}
	for _, goal := range []plan.Goal{p.Goal, anyTime} {
		var unsafe *plan.Plan
		safest := -1.0
		for _, b := range append(slices.Clone(restrictions), together) {
			if b.value != nil && b.value(goal) == "" {
				continue
			}
			o, c, ok := relax(problem, goal, opts, b)
			switch {
			case ok && c.Met():
				return p.instead(b, o, c)
			case ok && c.Reached > safest:
				unsafe, safest = p.instead(b, o, c), c.Reached
			}
		}
		if unsafe != nil {
			return unsafe
		}
	}
	return nil
}

// mostRelaxed is the maximum number of values of a bound to try.
const mostRelaxed = 5

// relax returns the best outcome for a goal with another value of one bound, and its confidence if that is judged: the
// value nearest to the given one for which the planner finds a plan with the goal's confidence, or none if the bound is
// not a number. If no value has the confidence, relax returns the safest outcome.
func relax(problem plan.Problem, goal plan.Goal, opts Options, b restriction) (best outcome, c *plan.Confidence,
	ok bool) {
	b.set(&goal, 0)
	q := newPlanning(problem, goal, opts)
	all := explore(q, opts)
	if b.of == nil {
		return q.surely(q.witness(all))
	}
	all = without(all, func(o outcome) bool { return excess(goal, o) != "" })
	slices.SortStableFunc(all, func(x, y outcome) int { return b.of(x) - b.of(y) })
	all = slices.CompactFunc(all, func(x, y outcome) bool { return b.of(x) == b.of(y) })
	for _, o := range all[:min(len(all), mostRelaxed)] {
		b.set(&goal, b.of(o))
		q := newPlanning(problem, goal, opts)
		found, share, within := q.surely(q.witness(explore(q, opts)))
		if within && (!ok || share.Met() || share.Reached > c.Reached) {
			best, c, ok = found, share, true
		}
		if ok && c.Met() {
			break
		}
	}
	return best, c, ok
}

// surely returns the best outcome within the goal, and its confidence if that is judged.
func (p *planning) surely(all []outcome) (best outcome, c *plan.Confidence, ok bool) {
	best, ok = p.choose(all)
	if ok && unsure(p) {
		best, c, _ = sure(p, all)
	}
	return best, c, ok
}

// instead returns the answer for a goal that is within reach with another value of a bound: the plan for that value.
func (p *planning) instead(b restriction, o outcome, c *plan.Confidence) *plan.Plan {
	remedy := fmt.Sprintf("a plan without %s", b.flag)
	if b.of != nil {
		remedy = fmt.Sprintf("%s %d", b.flag, b.of(o))
	}
	if d := p.Goal.Deadline; d > 0 && o.Makespan > d {
		remedy += fmt.Sprintf(" with --deadline %s", ceil(o.Makespan))
	}
	if p.Goal.Budget != nil && o.Cost.Money > p.Goal.Budget.Money {
		remedy += fmt.Sprintf(" with --budget %s", o.Cost)
	}
	pl := &plan.Plan{Workflow: p.Work.Name, Goal: p.Goal, Alternatives: plan.Alternatives{Nearest: judged(o, c)}}
	pl.Reasons = []string{fmt.Sprintf("no plan%s reaches the goal; %s is within reach", withBounds(p.Goal), remedy) +
		p.unsaid(c)}
	return pl
}

// unsaid says how a plan within reach meets the goal's confidence if it does not, or if that was not judged.
func (p *planning) unsaid(c *plan.Confidence) string {
	switch {
	case c != nil && !c.Met():
		return fmt.Sprintf(" by the estimates, but in a share of %.3f of simulated outcomes, not %g", c.Reached,
			c.Asked)
	case c == nil && unsure(p):
		return fmt.Sprintf(" by the estimates, not with --confidence %g", p.Goal.Confidence)
	}
	return ""
}
