package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// mostSites is the maximum number of sites that a message names.
const mostSites = 3

// hopeless returns the answer for a problem that no plan can solve, or nil if there may be a plan.
func hopeless(problem plan.Problem, goal plan.Goal, opts Options) (*plan.Plan, error) {
	if reason := impossible(problem); reason != "" {
		return &plan.Plan{Workflow: problem.Work.Name, Goal: goal, Reasons: []string{reason}}, nil
	}
	if opts.Shape == 0 {
		return nil, nil
	}
	return otherShape(problem, goal, opts)
}

// impossible returns the reason why no plan exists for any goal, or "" if there may be a plan.
func impossible(p plan.Problem) string {
	open := len(p.Present) > 0 ||
		slices.ContainsFunc(p.Sites, func(s plan.Site) bool { return s.Pilots > 0 && s.CPUs > 0 })
	for _, t := range p.Work.Tasks {
		if slices.ContainsFunc(p.Present, func(q plan.Present) bool { return t.Needs.FitIn(q.Host) }) {
			continue
		}
		ever := func(s plan.Site) bool { return t.Needs.FitIn(s.Host) }
		large := func(s plan.Site) bool { return s.Has(t.Needs) }
		long := func(s plan.Site) bool { return large(s) && s.Takes(t)+p.Cluster.Hop <= longest(&s, p.Cluster.Leave) }
		switch {
		case !slices.ContainsFunc(p.Sites, ever):
			return fmt.Sprintf("task %s needs %s, but no host has that: %s", t.ID, t.Needs, each(p.Sites, hostOf))
		case !open:
			return full(p.Sites)
		case !slices.ContainsFunc(p.Sites, large):
			return fmt.Sprintf("task %s needs %s, but no node has that: %s", t.ID, t.Needs, each(p.Sites, nodesOf))
		case !slices.ContainsFunc(p.Sites, long):
			return fmt.Sprintf("task %s takes %s, but no pilot stays that long: %s", t.ID, t.Runtime,
				each(slices.DeleteFunc(slices.Clone(p.Sites), func(s plan.Site) bool { return !large(s) }),
					stayOf(p.Cluster.Leave)))
		}
	}
	if !open {
		return full(p.Sites)
	}
	return ""
}

func full(sites []plan.Site) string { return "no site accepts a pilot now: " + each(sites, fullness) }

// each returns a message that describes each site with of; it names at most mostSites sites.
func each(sites []plan.Site, of func(plan.Site) string) string {
	var said []string
	for _, s := range sites[:min(len(sites), mostSites)] {
		said = append(said, "site "+s.Name+of(s))
	}
	if n := len(sites) - mostSites; n > 0 {
		said = append(said, fmt.Sprintf("and %d others", n))
	}
	return strings.Join(said, "; ")
}

// hostOf describes a site's largest host.
func hostOf(s plan.Site) string { return " has hosts of " + asKnown(s.Host) + " at most" }

// nodesOf describes the nodes of a site. Those of a machine are what other pilots leave of it.
func nodesOf(s plan.Site) string {
	if len(s.Nodes) == 0 {
		return hostOf(s)
	}
	var all []string
	for _, t := range s.Nodes[:min(len(s.Nodes), mostSites)] {
		all = append(all, asKnown(t.Resources))
	}
	return " has nodes with " + strings.Join(all, ", or ") + " free"
}

// asKnown describes resources as far as they are known.
func asKnown(h corral.Resources) string {
	for _, n := range []*int{&h.CPUs, &h.MemoryMiB, &h.GPUs, &h.DiskMiB} {
		if *n >= plan.Unlimited {
			*n = 0
		}
	}
	return h.String()
}

func stayOf(leave time.Duration) func(plan.Site) string {
	return func(s plan.Site) string {
		return fmt.Sprintf(" has a longest walltime of %s, of which %s are for tasks", s.Walltime,
			max(0, longest(&s, leave)))
	}
}

func fullness(s plan.Site) string {
	if s.CPUs <= 0 {
		return " has no cpus that are free for one"
	}
	return " has as many as its limits and those of the account allow"
}

// otherShape returns the answer for a requested host size that no site has, or that is too small for a task. The answer
// names the closest possible size and contains the plan for that size. It returns nil if the size is possible.
func otherShape(problem plan.Problem, goal plan.Goal, opts Options) (*plan.Plan, error) {
	largest := slices.MaxFunc(problem.Sites, func(a, b plan.Site) int { return a.Host.CPUs - b.Host.CPUs })
	task := slices.MaxFunc(problem.Work.Tasks, func(a, b plan.Task) int { return a.Needs.CPUs - b.Needs.CPUs })
	var reason string
	shape := opts.Shape
	switch {
	case shape > largest.Host.CPUs:
		opts.Shape = largest.Host.CPUs
		reason = fmt.Sprintf("no site has hosts of %d cpus: the largest, at site %s, has %s", shape, largest.Name,
			cpus(opts.Shape))
	case shape < task.Needs.CPUs && len(problem.Present) == 0:
		opts.Shape = task.Needs.CPUs
		reason = fmt.Sprintf("task %s needs %s, but hosts of %s have too few", task.ID, cpus(opts.Shape), cpus(shape))
	default:
		return nil, nil
	}
	near, err := decide(problem, goal, opts)
	if err != nil {
		return nil, err
	}
	pl := &plan.Plan{Workflow: problem.Work.Name, Goal: goal, LowerBound: near.LowerBound}
	reason += fmt.Sprintf("; --shape %d is within reach", opts.Shape)
	if pl.Nearest = near; !near.Feasible {
		pl.Nearest = near.Nearest
		reason += ", but " + near.Reasons[0]
	}
	pl.Reasons = []string{reason}
	return pl, nil
}

// check returns an error for a problem or a goal that is invalid.
func check(problem plan.Problem, goal plan.Goal) error {
	if len(problem.Work.Tasks) == 0 {
		return corral.Errorf(corral.Invalid, "a plan needs a workflow with at least one task")
	}
	for _, t := range problem.Work.Tasks {
		if t.Runtime < 0 {
			return corral.Errorf(corral.Invalid, "task %s has the estimate %s; it must not be negative", t.ID,
				t.Runtime)
		}
	}
	if len(problem.Sites) == 0 {
		return corral.Errorf(corral.Invalid, "a plan needs at least one site")
	}
	unit := problem.Unit()
	for _, s := range problem.Sites {
		if s.Tariff.Unit() != unit {
			return corral.Errorf(corral.Invalid, "site %s has its prices in %s, site %s in %s: plan for sites with "+
				"one unit",
				problem.Sites[0].Name, unit, s.Name, s.Tariff.Unit())
		}
	}
	if goal.Budget != nil && goal.Budget.Unit != unit {
		return corral.ErrorAt(corral.Invalid, "budget", "it is in %s, but the sites' prices are in %s",
			goal.Budget.Unit, unit)
	}
	if goal.Deadline < 0 {
		return corral.Errorf(corral.Invalid, "deadline %s is in the past", goal.Deadline)
	}
	return nil
}
