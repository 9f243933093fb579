// Package validator checks a plan against its problem independently of the planner: it shares no code with it, and
// recomputes all figures of the plan. Every plan is validated before it is returned.
//
// Check returns the first violated rule, and All returns every one, each as a Breach with the rule's name. These are
// the rules:
//
//	sites      site, shape, hosts, host, site walltime, site cpus, site pilots, allocation,
//	           nodes
//	pilots     submit, wait, overhead, end, walltime, maintenance, follows, hedges
//	schedule   all, once, task, pilot, pilot host, runtime, transfer, ready, released, running, precedence,
//	           schedule digest
//	hosts      cpus, memory, gpus, disk
//	figures    makespan, peak, core-hours, billed, cost, waste
//	goal       deadline, budget, max cpus, max pilots, not before, static
//
// The package does not judge whether a better plan exists, and does not simulate: it assumes that runtimes and waits
// are those of the problem.
package validator

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A Breach is the violation of a rule, with the first place where it occurs.
type Breach struct {
	Rule  string // name of the rule, such as precedence
	Where string // a sentence about the first place
	More  int    // number of further places
}

func (b *Breach) Error() string {
	return fmt.Sprintf("the plan breaks the rule %q: %s", b.Rule, b.Where)
}

// Check returns the first rule that a plan marked as feasible violates, as a *Breach, or nil if the plan violates none.
func Check(problem plan.Problem, p *plan.Plan) error {
	if all := All(problem, p); len(all) > 0 {
		return all[0]
	}
	return nil
}

// All returns all rules that a plan marked as feasible violates. If the plan's pilots are for unknown sites, or its
// schedule names unknown tasks or pilots, the rules that depend on them are not checked.
func All(problem plan.Problem, p *plan.Plan) []*Breach {
	c := &checker{problem: problem, plan: p}
	c.pilots()
	if c.broken("site") {
		return c.all
	}
	c.sites()
	c.nodes()
	c.witness()
	c.schedule()
	if !c.broken("task", "pilot", "pilot host") {
		c.capacity()
		c.precedence()
		c.sums()
	}
	c.goal()
	return c.all
}

// A checker collects the violations of a plan.
type checker struct {
	problem plan.Problem
	plan    *plan.Plan
	all     []*Breach
}

// breach records the violation of a rule; only the first place of each rule is kept.
func (c *checker) breach(rule, format string, args ...any) {
	if i := slices.IndexFunc(c.all, func(b *Breach) bool { return b.Rule == rule }); i >= 0 {
		c.all[i].More++
		return
	}
	c.all = append(c.all, &Breach{Rule: rule, Where: fmt.Sprintf(format, args...)})
}

// unless records the violation of a rule unless ok is true.
func (c *checker) unless(ok bool, rule, format string, args ...any) {
	if !ok {
		c.breach(rule, format, args...)
	}
}

// broken reports whether any of the rules is violated.
func (c *checker) broken(rules ...string) bool {
	return slices.ContainsFunc(c.all, func(b *Breach) bool { return slices.Contains(rules, b.Rule) })
}

// A change is a change in the resources used at an instant.
type change struct {
	at   corral.Seconds
	by   corral.Resources
	jobs int
}

// sweep calls check once for each instant, after all its changes, so that resources that become free at an instant can
// be used again at the same instant.
func sweep(changes []change, check func(at corral.Seconds, sum corral.Resources, jobs int)) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var sum corral.Resources
	jobs := 0
	for i, c := range changes {
		sum, jobs = sum.Plus(c.by), jobs+c.jobs
		if i+1 == len(changes) || changes[i+1].at != c.at {
			check(c.at, sum, jobs)
		}
	}
}

// sites checks a site's limits for all its pilots, across its queues.
func (c *checker) sites() {
	for _, s := range c.problem.Sites {
		var changes []change
		var spent cost.Money
		for _, q := range c.plan.Pilots {
			if q.Site != s.Name {
				continue
			}
			held := corral.Resources{CPUs: q.HeldCPUs()}
			changes = append(changes, change{q.Submit, corral.Resources{}, 1}, change{q.Start, held, 0},
				change{q.End, corral.Resources{}.Minus(held), -1})
			_, billed := s.Tariff.Bill(q)
			spent = spent.Plus(billed)
		}
		c.unless(s.Left == nil || *s.Left >= spent, "allocation", "site %s has %s left, but the plan costs %s", s.Name,
			s.Left, spent)
		sweep(changes, func(at corral.Seconds, sum corral.Resources, jobs int) {
			c.unless(sum.CPUs <= s.CPUs, "site cpus", "site %s allows %d cpus, but %d are held at %s", s.Name, s.CPUs,
				sum.CPUs, at)
			c.unless(jobs <= s.Pilots, "site pilots", "site %s allows %d pilots, but there are %d at %s", s.Name,
				s.Pilots, jobs, at)
		})
	}
}

// witness checks that a separately stored schedule belongs to the plan.
func (c *checker) witness() {
	if c.plan.Apart == nil {
		return
	}
	found, err := plan.WriteSchedule(io.Discard, c.plan.Schedule)
	c.unless(err == nil && found == *c.plan.Apart, "schedule digest", "the schedule has %d tasks and the digest %s, "+
		"but the plan's has %d and %s", found.Tasks, found.Digest, c.plan.Apart.Tasks, c.plan.Apart.Digest)
}

// schedule checks that each task is placed once, for its whole runtime, while its pilot exists.
func (c *checker) schedule() {
	seen, there := make([]bool, len(c.problem.Work.Tasks)), c.places()
	begun, follows := c.running(), c.follows()
	for _, at := range c.plan.Schedule {
		if at.Task < 0 || at.Task >= len(seen) {
			c.breach("task", "the schedule has task %s, which is not one of the workflow's %d", at.ID, len(seen))
			continue
		}
		t := &c.problem.Work.Tasks[at.Task]
		if seen[at.Task] {
			c.breach("once", "task %s is scheduled twice", t.ID)
		}
		seen[at.Task] = true
		if at.Pilot < 0 || at.Pilot >= len(there) {
			c.breach("pilot", "task %s is on pilot %d, but there are %d pilots", t.ID, at.Pilot, len(there))
			continue
		}
		on := there[at.Pilot]
		c.unless(on.lasts(at.Computes(), t.Runtime, c.plan.Clustering.Kind != clustering.None), "runtime",
			"task %s takes %s, but its estimate is %s", t.ID, at.Computes(), on.pace.Speed.Takes(t.Runtime))
		c.unless(on.travels(at, t.Bytes, follows != nil && follows[at.Task]), "transfer",
			"the files of task %s take %s, but %d bytes take %s", t.ID, at.Transfer, t.Bytes,
			on.pace.Transfer.Takes(t.Bytes))
		if at.Host < 0 || at.Host >= on.hosts {
			c.breach("pilot host", "task %s is on host %d of pilot %d, which has %d", t.ID, at.Host, at.Pilot, on.hosts)
		} else if at.Start < on.ready {
			c.breach("ready", "task %s starts before pilot %d is ready", t.ID, at.Pilot)
		} else if at.End > on.end && !begun[at.Task] {
			c.breach("released", "task %s ends after the release of pilot %d", t.ID, at.Pilot)
		}
	}
	for i, placed := range seen {
		if !placed {
			c.breach("all", "task %s is not scheduled", c.problem.Work.Task(i).ID)
		}
	}
}

// A place is a pilot that the schedule may use: one of the plan's, or a present one.
type place struct {
	hosts      int
	host       corral.Resources
	ready, end corral.Seconds // of its workers; they are present until end
	pace       plan.Pace
}

// lasts reports whether a task's duration matches its estimate. A duration is rounded if a speed divides the estimate,
// and a task that follows another in a job begins at the rounded end of the previous task.
func (p place) lasts(lasts, runtime time.Duration, clustered bool) bool {
	off := (lasts - p.pace.Speed.Takes(runtime)).Abs()
	return off == 0 || clustered && p.pace.Speed != 0 && off <= time.Millisecond
}

// travels reports whether the transfer time of a task matches the site's model. In a job of several tasks the sum of
// the times is rounded. The first task must include the latency; for the tasks that follow it the latency is optional.
func (p place) travels(at plan.Placement, bytes int64, follows bool) bool {
	way, t := time.Duration(at.Transfer), p.pace.Transfer
	if !follows {
		return way == t.Takes(bytes)
	}
	return way == t.Takes(bytes) || (way-t.Goes(bytes)).Abs() <= time.Millisecond
}

// places lists the plan's pilots, followed by the present ones.
func (c *checker) places() (all []place) {
	for _, q := range c.plan.Pilots {
		s := c.problem.Site(q.Site, q.Queue)
		has := s.ShapeOf(q).Host
		has.DiskMiB = s.Host.DiskMiB
		all = append(all, place{q.Hosts, has, q.Ready, q.End - corral.Seconds(c.problem.Cluster.Leave), s.Pace})
	}
	for _, q := range c.problem.Present {
		all = append(all, place{q.Hosts, q.Host, corral.Seconds(q.Ready), corral.Seconds(q.End), q.Pace})
	}
	return all
}

// running checks that running tasks stay where they are, and returns their indices.
func (c *checker) running() map[int]bool {
	begun := map[int]bool{}
	where := map[int]plan.Placement{}
	for _, at := range c.plan.Schedule {
		where[at.Task] = at
	}
	for i, q := range c.problem.Present {
		for _, r := range q.Running {
			at, ok := where[r.Task]
			c.unless(ok && at.Start == 0 && at.Pilot == len(c.plan.Pilots)+i && at.Host == r.Host, "running",
				"task %s is already running on host %d of present pilot %d", c.problem.Work.Task(r.Task).ID, r.Host, i)
			begun[r.Task] = true
		}
	}
	return begun
}

// capacity checks that the tasks that run on a host at the same time fit into its resources.
func (c *checker) capacity() {
	used, there := map[[2]int][]change{}, c.places()
	for _, at := range c.plan.Schedule {
		if at.Start == at.End {
			continue // the task has no duration
		}
		key, needs := [2]int{at.Pilot, at.Host}, c.problem.Work.Task(at.Task).Needs
		used[key] = append(used[key], change{at.Start, needs, 0}, change{at.End, corral.Resources{}.Minus(needs), 0})
	}
	order := func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }
	for _, key := range slices.SortedFunc(maps.Keys(used), order) {
		has := there[key[0]].host
		sweep(used[key], func(at corral.Seconds, sum corral.Resources, _ int) {
			for _, r := range []struct {
				rule      string
				used, has int
			}{
				{"cpus", sum.CPUs, has.CPUs}, {"memory", sum.MemoryMiB, has.MemoryMiB},
				{"gpus", sum.GPUs, has.GPUs}, {"disk", sum.DiskMiB, has.DiskMiB},
			} {
				if r.used > r.has {
					c.breach(r.rule, "host %d of pilot %d is assigned %d at %s, but has %d", key[1], key[0], r.used, at,
						r.has)
				}
			}
		})
	}
}

// precedence checks that no task starts before its parents have ended.
func (c *checker) precedence() {
	tasks := c.problem.Work.Tasks
	when := make([]plan.Placement, len(tasks))
	for _, at := range c.plan.Schedule {
		when[at.Task] = at
	}
	jobs := c.jobs()
	for i := range when {
		for _, parent := range c.problem.Work.Graph.Parents(i) {
			hop := corral.Seconds(c.problem.Cluster.Hop)
			if jobs != nil && jobs[i] == jobs[parent] {
				hop = 0 // the task follows its parent in the same job
			}
			if when[i].Start < when[parent].End+hop {
				c.breach("precedence", "task %s starts at %s, but its parent %s ends at %s", tasks[i].ID, when[i].Start,
					tasks[parent].ID, when[parent].End)
			}
		}
	}
}

// sums checks the totals of the plan.
func (c *checker) sums() {
	p := c.plan
	var held, billed time.Duration
	var spent cost.Money
	var changes []change
	for _, q := range p.Pilots {
		length, money := c.problem.Site(q.Site, q.Queue).Tariff.Bill(q)
		cpus := corral.Resources{CPUs: q.HeldCPUs()}
		held += time.Duration(q.End-q.Start) * time.Duration(cpus.CPUs)
		billed += length * time.Duration(cpus.CPUs)
		spent = spent.Plus(money)
		changes = append(changes, change{q.Start, cpus, 0}, change{q.End, corral.Resources{}.Minus(cpus), 0})
	}
	peak := 0
	sweep(changes, func(_ corral.Seconds, sum corral.Resources, _ int) { peak = max(peak, sum.CPUs) })
	var last corral.Seconds
	var work time.Duration // on the plan's own pilots
	for _, at := range p.Schedule {
		last = max(last, at.End)
		if at.Pilot < len(p.Pilots) {
			work += at.Computes() * time.Duration(c.problem.Work.Task(at.Task).Needs.CPUs)
		}
	}
	same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) }
	c.unless(p.Makespan == last, "makespan", "the plan states %s, but its schedule ends at %s", p.Makespan, last)
	c.unless(p.PeakCPUs == peak, "peak", "the plan states %d cpus, but its pilots hold %d", p.PeakCPUs, peak)
	c.unless(same(p.CoreHours, held.Hours()), "core-hours", "the plan states %g, but its pilots hold %g", p.CoreHours,
		held.Hours())
	c.unless(same(p.Billed, billed.Hours()), "billed", "the plan states %g core-hours, but its pilots are billed for "+
		"%g", p.Billed, billed.Hours())
	c.unless(p.Cost.Money == spent, "cost", "the plan states %s, but its pilots cost %s", p.Cost, spent)
	c.unless(held <= 0 || same(p.Waste, 1-float64(work)/float64(held)), "waste", "the plan states %g, but it is %g",
		p.Waste, 1-float64(work)/float64(max(held, 1)))
}

// goal checks that the plan meets its goal.
func (c *checker) goal() {
	p, goal := c.plan, c.plan.Goal
	c.unless(goal.Deadline <= 0 || p.Makespan <= goal.Deadline, "deadline",
		"the plan ends after %s, but the deadline is %s", p.Makespan, goal.Deadline)
	c.unless(goal.Budget == nil || p.Cost.Money <= goal.Budget.Money, "budget", "the plan costs %s, but the budget "+
		"is %s", p.Cost, goal.Budget)
	c.bounds()
}
