// Package validator checks a plan against its problem, without knowing how plans are made: it shares no code with the
// planner, and computes again whatever a plan says of itself. Every plan passes it before anybody sees it.
//
// A rule has a name, which the errors carry, and so do the tests: each breaks a valid plan in one way and expects the
// name of one rule.
package validator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/plan"
)

// A Breach says which rule a plan breaks, and where.
type Breach struct {
	Rule  string
	Where string
}

func (b *Breach) Error() string {
	return fmt.Sprintf("the plan breaks the rule %q: %s", b.Rule, b.Where)
}

func breach(rule, format string, args ...any) error {
	return &Breach{rule, fmt.Sprintf(format, args...)}
}

// Check returns the first rule that a feasible plan breaks, as a *Breach, or nil.
func Check(problem plan.Problem, p *plan.Plan) error {
	for _, check := range []func(plan.Problem, *plan.Plan) error{pilots, sites, schedule, capacity, precedence, sums,
		goal} {
		if err := check(problem, p); err != nil {
			return err
		}
	}
	return nil
}

// pilots checks each pilot against what its site gives.
func pilots(problem plan.Problem, p *plan.Plan) error {
	for i, q := range p.Pilots {
		s := problem.Site(q.Site, q.Queue)
		if s == nil {
			return breach("site", "pilot %d is for site %s, queue %q, which is not there", i, q.Site, q.Queue)
		}
		switch held, shape := time.Duration(q.End-q.Start), shapeOf(q, s); {
		case q.Hosts < 1 || q.CPUs < 1:
			return breach("shape", "pilot %d has %d hosts of %d cpus", i, q.Hosts, q.CPUs)
		case q.Hosts > s.Hosts:
			return breach("hosts", "pilot %d has %d hosts, site %s gives %d", i, q.Hosts, q.Site, s.Hosts)
		case !q.Host().FitIn(s.Host):
			return breach("host", "pilot %d asks for hosts of %s, site %s has %s", i, q.Host(), q.Site, s.Host)
		case q.Submit < 0:
			return breach("submit", "pilot %d is asked for %s before the plan begins", i, -q.Submit)
		case time.Duration(q.Start-q.Submit) < s.Wait(shape):
			return breach("wait", "pilot %d starts %s after it is asked for; the wait is %s", i, q.Start-q.Submit,
				s.Wait(shape))
		case time.Duration(q.Ready-q.Start) < s.Overhead:
			return breach("overhead", "pilot %d is ready %s after its start; it takes %s", i, q.Ready-q.Start,
				s.Overhead)
		case q.End < q.Ready:
			return breach("end", "pilot %d ends before it is ready", i)
		case time.Duration(q.Walltime) > s.Walltime:
			return breach("site walltime", "pilot %d asks for %s, site %s gives %s", i, q.Walltime, q.Site, s.Walltime)
		case held+s.Margin > time.Duration(q.Walltime):
			return breach("walltime", "pilot %d is held for %s of a walltime of %s", i, held, q.Walltime)
		}
		for _, c := range s.Closed {
			if c.Overlaps(plan.Span{From: time.Duration(q.Start), To: time.Duration(q.End)}) {
				return breach("maintenance", "pilot %d is held while site %s is closed, from %s to %s", i, q.Site,
					c.From, c.To)
			}
		}
	}
	return nil
}

func shapeOf(q plan.Pilot, s *plan.Site) plan.Shape {
	host := q.Host()
	if host.MemoryMiB == 0 {
		host.MemoryMiB = s.Host.MemoryMiB
	}
	return plan.Shape{Hosts: q.Hosts, Host: host, Walltime: time.Duration(q.Walltime)}
}

// A change is an instant at which what is used changes.
type change struct {
	at   corral.Seconds
	by   corral.Resources
	jobs int
}

// sweep calls check after all the changes of each instant; what ends at an instant is gone before what begins there.
func sweep(changes []change, check func(at corral.Seconds, sum corral.Resources, jobs int) error) error {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var sum corral.Resources
	jobs := 0
	for i, c := range changes {
		sum, jobs = sum.Plus(c.by), jobs+c.jobs
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		if err := check(c.at, sum, jobs); err != nil {
			return err
		}
	}
	return nil
}

// sites checks what a site gives to all pilots together, its queues taken as one.
func sites(problem plan.Problem, p *plan.Plan) error {
	for _, s := range problem.Sites {
		var changes []change
		var spent cost.Money
		for _, q := range p.Pilots {
			if q.Site != s.Name {
				continue
			}
			held := corral.Resources{CPUs: q.HeldCPUs()}
			changes = append(changes, change{q.Submit, corral.Resources{}, 1}, change{q.Start, held, 0},
				change{q.End, corral.Resources{}.Minus(held), -1})
			_, billed := s.Tariff.Bill(q)
			spent = spent.Plus(billed)
		}
		if s.Left != nil && *s.Left < spent {
			return breach("allocation", "site %s has %s left, the plan takes %s", s.Name, *s.Left, spent)
		}
		err := sweep(changes, func(at corral.Seconds, sum corral.Resources, jobs int) error {
			switch {
			case sum.CPUs > s.CPUs:
				return breach("site cpus", "site %s gives %d cpus, %d are held at %s", s.Name, s.CPUs, sum.CPUs, at)
			case jobs > s.Pilots:
				return breach("site pilots", "site %s takes %d pilots, there are %d at %s", s.Name, s.Pilots, jobs, at)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// schedule checks that each task is placed once, for its whole runtime, within the life of a pilot.
func schedule(problem plan.Problem, p *plan.Plan) error {
	seen, there := make([]bool, len(problem.Work.Tasks)), places(problem, p)
	begun, err := running(problem, p)
	if err != nil {
		return err
	}
	for _, at := range p.Schedule {
		if at.Task < 0 || at.Task >= len(seen) {
			return breach("task", "the schedule has a task %d, there are %d", at.Task, len(seen))
		}
		t := problem.Work.Tasks[at.Task]
		switch {
		case seen[at.Task]:
			return breach("once", "task %s is scheduled twice", t.ID)
		case at.Pilot < 0 || at.Pilot >= len(there):
			return breach("pilot", "task %s is on pilot %d, there are %d", t.ID, at.Pilot, len(there))
		case at.Host < 0 || at.Host >= there[at.Pilot].hosts:
			return breach("pilot host", "task %s is on host %d of pilot %d, which has %d", t.ID, at.Host, at.Pilot,
				there[at.Pilot].hosts)
		case !there[at.Pilot].lasts(time.Duration(at.End-at.Start), t.Runtime, p.Clustering.Groups > 0):
			return breach("runtime", "task %s takes %s, its estimate is %s", t.ID, at.End-at.Start,
				there[at.Pilot].speed.Takes(t.Runtime))
		case at.Start < there[at.Pilot].ready:
			return breach("ready", "task %s starts before pilot %d is ready", t.ID, at.Pilot)
		case at.End > there[at.Pilot].end && !begun[at.Task]:
			return breach("released", "task %s ends after pilot %d is released", t.ID, at.Pilot)
		}
		seen[at.Task] = true
	}
	if i := slices.Index(seen, false); i >= 0 {
		return breach("all", "task %s is not scheduled", problem.Work.Tasks[i].ID)
	}
	return nil
}

// A place is a pilot as a schedule sees it: one of the plan's, or one that is present.
type place struct {
	hosts      int
	host       corral.Resources
	ready, end corral.Seconds
	speed      plan.Speed
}

// lasts reports whether a task lasts as long as its estimate says. Where that is divided it is rounded, and a task that
// follows others in a job begins at the rounded end of what comes before it.
func (p place) lasts(lasts, runtime time.Duration, clustered bool) bool {
	off := (lasts - p.speed.Takes(runtime)).Abs()
	return off == 0 || clustered && p.speed != 0 && off <= time.Millisecond
}

// places lists the plan's pilots, and after them those that are present.
func places(problem plan.Problem, p *plan.Plan) (all []place) {
	for _, q := range p.Pilots {
		s := problem.Site(q.Site, q.Queue)
		has := shapeOf(q, s).Host
		has.DiskMiB = s.Host.DiskMiB
		all = append(all, place{q.Hosts, has, q.Ready, q.End, s.Speed})
	}
	for _, q := range problem.Present {
		all = append(all, place{q.Hosts, q.Host, corral.Seconds(q.Ready), corral.Seconds(q.End), q.Speed})
	}
	return all
}

// running checks that tasks which run already stay where they are, and says which they are.
func running(problem plan.Problem, p *plan.Plan) (map[int]bool, error) {
	begun := map[int]bool{}
	where := map[int]plan.Placement{}
	for _, at := range p.Schedule {
		where[at.Task] = at
	}
	for i, q := range problem.Present {
		for _, r := range q.Running {
			at, ok := where[r.Task]
			if !ok || at.Start != 0 || at.Pilot != len(p.Pilots)+i || at.Host != r.Host {
				return nil, breach("running", "task %s runs on host %d of present pilot %d already",
					problem.Work.Tasks[r.Task].ID, r.Host, i)
			}
			begun[r.Task] = true
		}
	}
	return begun, nil
}

// capacity checks that no host is given more at once than it has.
func capacity(problem plan.Problem, p *plan.Plan) error {
	used, there := map[[2]int][]change{}, places(problem, p)
	for _, at := range p.Schedule {
		if at.Start == at.End {
			continue // it is over as it begins
		}
		key, needs := [2]int{at.Pilot, at.Host}, problem.Work.Tasks[at.Task].Needs
		used[key] = append(used[key], change{at.Start, needs, 0}, change{at.End, corral.Resources{}.Minus(needs), 0})
	}
	for key, changes := range used {
		has := there[key[0]].host
		err := sweep(changes, func(at corral.Seconds, sum corral.Resources, _ int) error {
			for _, r := range []struct {
				rule      string
				used, has int
			}{
				{"cpus", sum.CPUs, has.CPUs}, {"memory", sum.MemoryMiB, has.MemoryMiB},
				{"gpus", sum.GPUs, has.GPUs}, {"disk", sum.DiskMiB, has.DiskMiB},
			} {
				if r.used > r.has {
					return breach(r.rule, "host %d of pilot %d is given %d at %s, it has %d", key[1], key[0], r.used,
						at, r.has)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// precedence checks that no task starts before its parents have ended.
func precedence(problem plan.Problem, p *plan.Plan) error {
	when := make([]plan.Placement, len(problem.Work.Tasks))
	for _, at := range p.Schedule {
		when[at.Task] = at
	}
	for i := range when {
		for _, parent := range problem.Work.Graph.Parents(i) {
			if when[i].Start < when[parent].End+corral.Seconds(problem.Cluster.Hop) {
				return breach("precedence", "task %s starts at %s, its parent %s ends at %s", problem.Work.Tasks[i].ID,
					when[i].Start, problem.Work.Tasks[parent].ID, when[parent].End)
			}
		}
	}
	return nil
}

// sums checks what the plan says of itself as a whole.
func sums(problem plan.Problem, p *plan.Plan) error {
	var held, billed time.Duration
	var spent cost.Money
	var changes []change
	for _, q := range p.Pilots {
		s := problem.Site(q.Site, q.Queue)
		length, money := s.Tariff.Bill(q)
		cpus := corral.Resources{CPUs: q.HeldCPUs()}
		held += time.Duration(q.End-q.Start) * time.Duration(cpus.CPUs)
		billed += length * time.Duration(cpus.CPUs)
		spent = spent.Plus(money)
		changes = append(changes, change{q.Start, cpus, 0}, change{q.End, corral.Resources{}.Minus(cpus), 0})
	}
	peak, last := 0, corral.Seconds(0)
	if err := sweep(changes, func(_ corral.Seconds, sum corral.Resources, _ int) error {
		peak = max(peak, sum.CPUs)
		return nil
	}); err != nil {
		return err
	}
	for _, at := range p.Schedule {
		last = max(last, at.End)
	}
	var work time.Duration // on the plan's own pilots
	for _, at := range p.Schedule {
		if at.Pilot < len(p.Pilots) {
			work += time.Duration(at.End-at.Start) * time.Duration(problem.Work.Tasks[at.Task].Needs.CPUs)
		}
	}
	differ := func(a, b float64) bool { return math.Abs(a-b) > 1e-9*max(1, math.Abs(a)) }
	switch {
	case p.Makespan != last:
		return breach("makespan", "the plan says %s, its schedule ends at %s", p.Makespan, last)
	case p.PeakCPUs != peak:
		return breach("peak", "the plan says %d cpus, its pilots hold %d", p.PeakCPUs, peak)
	case differ(p.CoreHours, held.Hours()):
		return breach("core-hours", "the plan says %g, its pilots hold %g", p.CoreHours, held.Hours())
	case differ(p.Billed, billed.Hours()):
		return breach("billed", "the plan says %g core-hours, its pilots are billed %g", p.Billed, billed.Hours())
	case p.Cost.Money != spent:
		return breach("cost", "the plan says %s, its pilots cost %s", p.Cost, spent)
	case held > 0 && differ(p.Waste, 1-float64(work)/float64(held)):
		return breach("waste", "the plan says %g", p.Waste)
	}
	return nil
}

// goal checks that the plan reaches what it was asked to.
func goal(_ plan.Problem, p *plan.Plan) error {
	switch {
	case p.Goal.Deadline > 0 && p.Makespan > p.Goal.Deadline:
		return breach("deadline", "the plan ends after %s, the deadline is %s", p.Makespan, p.Goal.Deadline)
	case p.Goal.Budget != nil && p.Goal.Budget.Money < p.Cost.Money:
		return breach("budget", "the plan costs %s, the budget is %s", p.Cost, *p.Goal.Budget)
	}
	return nil
}
