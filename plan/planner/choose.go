package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// choose returns the best outcome within the goal's deadline and budget.
func (p *planning) choose(all []outcome) (best outcome, ok bool) {
	if k, ok := p.best(all); ok {
		return all[k], true
	}
	return outcome{}, false
}

// best returns the index of the best outcome within the goal's deadline and budget. For a workflow whose front is not
// executed, that is the best one of those that have been executed, if there is any.
func (p *planning) best(all []outcome) (best int, ok bool) {
	order := ranked(p.Goal, all)
	if len(order) == 0 {
		return 0, false
	}
	if len(p.all) > PlayedFront {
		for _, k := range order {
			if all[k].played {
				return k, true
			}
		}
	}
	return order[0], true
}

// ranked returns the indices of the outcomes that the goal admits, the best first. Outcomes beyond the deadline or the
// budget still serve as references for the weighing; those beyond a site's limit do not.
func ranked(goal plan.Goal, all []outcome) []int {
	var possible []int
	var candidates []plan.Candidate
	for k, o := range all {
		if o.limit == "" {
			possible = append(possible, k)
			candidates = append(candidates, plan.Candidate{Point: o.point(), CPUs: o.peak,
				Outside: excess(goal, o) != ""})
		}
	}
	order := goal.Order(candidates, func(i, j int) int {
		a, b := all[possible[i]], all[possible[j]]
		return cmp.Or(cmp.Compare(a.held, b.held), a.pilots-b.pilots)
	})
	for i, k := range order {
		order[i] = possible[k]
	}
	return order
}

// point returns the figures by which outcomes are compared. Their cost is an amount of money, or held microseconds of a
// cpu if no site has a price: a planning uses the same measure for all outcomes.
func (o outcome) point() cost.Point {
	p := cost.Point{Makespan: time.Duration(o.Makespan), Cost: o.Cost.Money}
	if !priced(o.of.Sites) {
		p.Cost = cost.Money(o.held.Microseconds())
	}
	return p
}

// excess describes the bound of the goal or the limit of a site that an outcome violates; it returns "" if the outcome
// violates none.
func excess(goal plan.Goal, o outcome) string {
	switch {
	case o.limit != "":
		return o.limit
	case o.breach != "":
		return o.breach
	case goal.Deadline > 0 && o.Makespan > goal.Deadline:
		return fmt.Sprintf("the deadline of %s: it ends after %s", goal.Deadline, o.Makespan)
	case goal.Budget != nil && goal.Budget.Money < o.Cost.Money:
		return fmt.Sprintf("the budget of %s: it costs %s", *goal.Budget, o.Cost)
	}
	return ""
}

// priced reports whether any site has a price.
func priced(sites []plan.Site) bool {
	return slices.ContainsFunc(sites, func(s plan.Site) bool { return !s.Tariff.Free() })
}

// front returns the outcomes that violate no limit of a site or bound of the goal, and are not dominated in both
// makespan and cost, sorted by makespan.
func front(all []outcome) []plan.Point {
	points := []plan.Point{}
	for _, k := range frontier(all) {
		points = append(points, all[k].Point)
	}
	return points
}

// frontier returns the indices of the outcomes of the front, by makespan. A slower outcome that is cheaper only because
// the costs of its pilots are rounded is dominated.
func frontier(all []outcome) (some []int) {
	var possible []int
	var points []cost.Point
	for k, o := range all {
		if o.limit == "" && o.breach == "" {
			possible, points = append(possible, k), append(points, o.point())
		}
	}
	for _, k := range cost.Pareto(points, func(i, j int) int { return all[possible[i]].peak - all[possible[j]].peak }) {
		o := &all[possible[k]]
		if n := len(some); n > 0 {
			if last := &all[some[n-1]]; last.point().Cost-o.point().Cost <= rounding(last, o) {
				continue
			}
		}
		some = append(some, possible[k])
	}
	return some
}

// rounding returns the largest difference between two costs that are equal before they are rounded: half a micro-unit
// for each pilot.
func rounding(a, b *outcome) cost.Money {
	if !priced(a.of.Sites) {
		return 0
	}
	return cost.Money(a.pilots+b.pilots) / 2
}

// unreachable returns the answer for a goal that no candidate reaches: the nearest plan, and the change that would make
// it reachable.
func (p *planning) unreachable(all []outcome, problem plan.Problem, opts Options) *plan.Plan {
	pl := &plan.Plan{Workflow: p.Work.Name, Goal: p.Goal, Alternatives: plan.Alternatives{Front: front(all)}}
	possible := without(all, func(o outcome) bool { return o.limit != "" || o.breach != "" })
	if len(possible) == 0 {
		if relaxed := p.relaxed(problem, opts); relaxed != nil {
			return relaxed
		}
		pl.Limits = cuts(p.Sites, p.most, all)
		if slices.ContainsFunc(all, func(o outcome) bool { return o.limit == undone }) {
			pl.Reasons = []string{"every plan leaves a task undone when it is executed: " + undone}
			return pl
		}
		pl.Reasons = []string{"no plan" + withBounds(p.Goal) + " is within the sites' limits"}
		if len(pl.Limits) > 0 {
			pl.Reasons[0] += ": " + strings.Join(pl.Limits, "; ")
		}
		return pl
	}
	nearest, reason := p.nearest(possible)
	pl.Reasons, pl.Limits = []string{reason + p.unsaid(nil)}, cuts(p.Sites, p.most, all)
	pl.Nearest = nearest.of.finish(nearest)
	return pl
}

// nearest returns the plan closest to an unreachable goal, and the change of the goal that would allow it. The change
// affects only one bound if the other can be kept, and otherwise both.
func (p *planning) nearest(possible []outcome) (outcome, string) {
	soonest, cheapest := slices.MinFunc(possible, sooner), slices.MinFunc(possible, cheaper)
	deadline, budget := p.Goal.Deadline, p.Goal.Budget
	late := func(o outcome) bool { return deadline > 0 && o.Makespan > deadline }
	dear := func(o outcome) bool { return budget != nil && o.Cost.Money > budget.Money }
	switch {
	case late(soonest) && dear(cheapest):
		return soonest, fmt.Sprintf("no plan%s ends within %s, and none costs %s or less: the fastest ends after %s "+
			"and costs %s; %s", withBounds(p.Goal), deadline, *budget, beyond(soonest.Makespan, deadline), soonest.Cost,
			within(soonest, fmt.Sprintf("--budget %s", soonest.Cost)))
	case budget == nil || late(soonest):
		return tooLate(p.tasks.quick, p.Goal, slices.MinFunc(without(possible, dear), sooner))
	case dear(cheapest) && !late(cheapest):
		return cheapest, fmt.Sprintf("no plan%s costs %s or less: the cheapest costs %s; --budget %s is within reach",
			withBounds(p.Goal), *budget, cheapest.Cost, cheapest.Cost)
	}
	least := slices.MinFunc(without(possible, late), cheaper)
	return least, fmt.Sprintf("no plan%s ends within %s for %s: the cheapest that does costs %s; --budget %s is "+
		"within reach", withBounds(p.Goal),
		deadline, *budget, least.Cost, least.Cost)
}

// tooLate explains that the deadline is unreachable; o is the fastest outcome within the budget, if there is one.
func tooLate(work plan.Work, goal plan.Goal, o outcome) (outcome, string) {
	deadline := goal.Deadline
	if path := work.Graph.CriticalPath(work.Runtimes()); time.Duration(deadline) < path {
		return o, fmt.Sprintf("the deadline of %s is shorter than the critical path of %s, which no "+
			"number of cpus shortens; %s", deadline, path, within(o, ""))
	}
	return o, fmt.Sprintf("no plan%s ends within %s: waits, start-up and limits of the sites included, the "+
		"fastest ends after %s; %s", withBounds(goal), deadline, beyond(o.Makespan, deadline), within(o, ""))
}

// within returns the deadline and the other flags with which an outcome is feasible. Deadlines beyond
// plan.LongestDeadline are not allowed.
func within(o outcome, flags string) string {
	at := ceil(o.Makespan)
	switch {
	case at <= plan.LongestDeadline && flags != "":
		return fmt.Sprintf("--deadline %s %s is within reach", at, flags)
	case at <= plan.LongestDeadline:
		return fmt.Sprintf("--deadline %s is within reach", at)
	case flags != "":
		return flags + " without --deadline is within reach"
	}
	return "a plan without --deadline is within reach"
}

// beyond rounds an end after the deadline so that the two remain distinguishable.
func beyond(end, deadline corral.Seconds) time.Duration {
	d, bound := time.Duration(end), time.Duration(deadline)
	if r := round(d); r > bound {
		return r
	}
	return plan.Beyond(d, bound)
}

func sooner(a, b outcome) int {
	return cmp.Or(cmp.Compare(a.Makespan, b.Makespan), cmp.Compare(a.point().Cost, b.point().Cost))
}

func cheaper(a, b outcome) int {
	return cmp.Or(cmp.Compare(a.point().Cost, b.point().Cost), cmp.Compare(a.Makespan, b.Makespan))
}

// without returns the outcomes that lack a property.
func without(all []outcome, so func(outcome) bool) []outcome {
	return slices.DeleteFunc(slices.Clone(all), so)
}

// cpus formats a number of cpus.
func cpus(n int) string {
	if n == 1 {
		return "1 cpu"
	}
	return fmt.Sprintf("%d cpus", n)
}

// round rounds a duration for display: to tenths of a second below a minute, otherwise to seconds.
func round(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// ceil rounds up to whole seconds, so that a suggested deadline is really feasible.
func ceil(d corral.Seconds) corral.Seconds {
	return (d + corral.Seconds(time.Second) - 1) / corral.Seconds(time.Second) * corral.Seconds(time.Second)
}

// reasons explains the choice: its basis, and the cost of its neighbours on the front.
func (p *planning) reasons(best outcome, all []outcome) []string {
	var said []string
	path := p.Work.Graph.CriticalPath(p.tasks.quick.Runtimes())
	said = append(said, fmt.Sprintf("the critical path takes %s and the work %s: at most %s can be of use at once",
		round(path), plan.CoreTime(p.Work.CPUTime().Hours()), cpus(p.most)))
	said = append(said, best.whyClustered(all)...)
	if held := presentCPUs(p.Present); held > 0 {
		order := "are used first"
		if c := best.candidate; len(c) > 0 && c[0].ahead {
			order = "come after faster hosts"
		}
		said = append(said, fmt.Sprintf("%s of present or requested pilots %s", cpus(held), order))
	}
	sooner, later := neighbours(best.Point, front(all))
	for _, o := range sooner {
		said = append(said, fmt.Sprintf("%s sooner (%s) would take %s and %s instead of %s",
			round(time.Duration(best.Makespan-o.Makespan)), round(time.Duration(o.Makespan)),
			cpus(o.PeakCPUs), plan.CoreTime(o.CoreHours), plan.CoreTime(best.CoreHours)))
	}
	for _, o := range later {
		said = append(said, fmt.Sprintf("%s less (%s) would take %s longer, with %s",
			plan.CoreTime(best.CoreHours-o.CoreHours), plan.CoreTime(o.CoreHours),
			round(time.Duration(o.Makespan-best.Makespan)), cpus(o.PeakCPUs)))
	}
	return said
}

// worthSaying is the minimum relative difference between two makespans that matters to a user.
const worthSaying = 0.01

// neighbours returns the points of a front that are useful for comparison: the fastest, the next faster, and the next
// cheaper. Among points with about the same makespan it chooses the cheapest.
func neighbours(of plan.Point, front []plan.Point) (sooner, later []plan.Point) {
	for _, o := range front {
		much := corral.Seconds(worthSaying * float64(o.Makespan))
		switch n := len(sooner); {
		case o.CoreHours > of.CoreHours && of.Makespan-o.Makespan > much:
			if n > 0 && o.Makespan-sooner[n-1].Makespan <= much {
				sooner[n-1] = o
			} else {
				sooner = append(sooner, o)
			}
		case o.CoreHours < of.CoreHours && o.Makespan > of.Makespan && len(later) == 0:
			later = append(later, o)
		}
	}
	if n := len(sooner); n > 2 {
		sooner = []plan.Point{sooner[0], sooner[n-1]}
	}
	return sooner, later
}
