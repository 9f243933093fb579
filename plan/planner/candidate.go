package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A candidate says on which hosts a plan may draw at most, before it is known which of them it needs when.
type candidate []share // sites in the order in which they are filled

// A share is a number of hosts of one site and shape.
type share struct {
	site  *plan.Site
	host  corral.Resources
	count int
	slot  *Slot // that they are in; nil: they are there after a wait, for as long as the site gives
}

// An outcome is what a candidate comes to.
type outcome struct {
	candidate candidate
	of        *planning // that made it
	plan.Point
	held   time.Duration // cpus × time
	billed time.Duration
	peak   int
	pilots int
	slack  time.Duration // by which pilots' hosts may differ, see pilots
	late   time.Duration // by which the plan begins later than its schedule
	limit  string        // the limit of a site that it breaks; empty: none

	schedule *schedule // nil: the list schedule that evaluate makes
}

// evaluate plays a candidate and measures the plan that it makes. More hosts at once may wait longer than one: then
// the plan begins that much later. Where a site has a maintenance, or hosts are in slots, it is made again with the
// later beginning, because what is merely shifted could run into the one, or out of the other.
func (p *planning) evaluate(c candidate) (outcome, *schedule) {
	var begin time.Duration
	for range 5 {
		s := list(p.tasks, p.Cluster, p.lines(c, begin))
		if s.placed < len(p.Work.Tasks) {
			return outcome{candidate: c, of: p, limit: "some task fits none of its pilots"}, nil
		}
		o := p.gather(c, s)
		if o.late == 0 || !c.timed() && len(p.Present) == 0 {
			return o, s // what is present cannot be shifted
		}
		begin += o.late
	}
	return outcome{candidate: c, of: p, limit: "its pilots wait for longer and longer, the later they are asked for"},
		nil
}

// timed reports whether something is at its time, and cannot be shifted: a maintenance of a site, or a slot.
func (c candidate) timed() bool {
	return slices.ContainsFunc(c, func(s share) bool { return s.slot != nil || len(s.site.Closed) > 0 })
}

// gather makes pilots of what a schedule holds. Fewer of them, of more hosts each, are worth a fiftieth of the
// core-hours.
func (p *planning) gather(c candidate, s *schedule) outcome {
	best := p.measure(c, p.draft(s, 0))
	most := best.held + best.held/50
	for _, slack := range []time.Duration{s.makespan / 100, s.makespan / 20, s.makespan / 5, s.makespan} {
		o := p.measure(c, p.draft(s, slack))
		if p.Goal.Objective == plan.CPUs && (o.peak > best.peak || o.Makespan > best.Makespan) {
			continue
		}
		if o.slack = slack; best.limit != "" && o.limit == "" || o.pilots < best.pilots && o.held <= most &&
			o.limit == "" {
			best = o
		}
	}
	best.late = time.Duration(best.Makespan) - s.makespan
	return best
}

// lines are the hosts of a candidate, of which none is asked for before begin.
func (p *planning) lines(c candidate, begin time.Duration) []*line {
	all := presentLines(p.Present)
	for _, share := range c {
		shape := plan.Shape{Hosts: 1, Host: share.host, Walltime: share.site.Walltime}
		ready := begin + share.site.Wait(shape) + share.site.Overhead
		if share.slot != nil {
			ready = max(begin, share.slot.From) + share.site.Overhead
		}
		for range share.count {
			all = append(all, &line{site: share.site, host: share.host, ready: ready, slot: share.slot,
				leave: p.Cluster.Leave, keep: keep(share.site, p.Cluster.Leave), reserve: reserve(p)})
		}
	}
	return all
}

// shortestRelease is the least idle time for which it is worth to release a pilot and to ask for another: every request
// is a burden to the site, and may wait longer than expected.
const shortestRelease = time.Minute

// keep is how long a host of a site is kept idle. To hold a cpu through a pause costs the pause; to ask again costs
// what the old one takes to leave and the new one to come, in which they are held and do nothing.
func keep(s *plan.Site, leave time.Duration) time.Duration {
	return max(leave+s.Overhead, shortestRelease)
}

// draft makes a plan of a schedule, without its witness. If a pilot would have to be asked for before the plan begins,
// because more hosts at once wait longer, the whole plan begins that much later.
func (p *planning) draft(s *schedule, slack time.Duration) *plan.Plan {
	pilots, _ := s.pilots(slack, p.parts)
	late := delay(pilots)
	shift(pilots, late)
	plan.Line(p.Sites, pilots)
	return &plan.Plan{Workflow: p.Work.Name, Feasible: true, Goal: p.Goal, Clustering: p.clustering, Pilots: pilots,
		Point: plan.Point{Makespan: corral.Seconds(s.makespan + late)}}
}

// delay is how much later the pilots have to come so that none is asked for before the beginning.
func delay(pilots []plan.Pilot) (late time.Duration) {
	for _, q := range pilots {
		late = max(late, -time.Duration(q.Submit))
	}
	return late
}

func shift(pilots []plan.Pilot, by time.Duration) {
	for i := range pilots {
		q := &pilots[i]
		for _, at := range []*corral.Seconds{&q.Submit, &q.Start, &q.Ready, &q.End} {
			*at += corral.Seconds(by)
		}
	}
}

// measure computes what a plan's pilots hold and cost, fills that into the plan, and finds the limit that they break.
func (p *planning) measure(c candidate, pl *plan.Plan) outcome {
	out := outcome{candidate: c, of: p, pilots: len(pl.Pilots)}
	spent := map[string]cost.Money{}
	total := cost.Amount{Unit: p.Unit()}
	for _, q := range pl.Pilots {
		cpus := time.Duration(q.HeldCPUs())
		length, money := p.Site(q.Site, q.Queue).Tariff.Bill(q)
		out.held += time.Duration(q.End-q.Start) * cpus
		out.billed += length * cpus
		spent[q.Site] = spent[q.Site].Plus(money)
		total.Money = total.Money.Plus(money)
	}
	out.peak, out.limit = peaks(p.Problem, pl.Pilots)
	for _, s := range p.Sites {
		if out.limit == "" && s.Left != nil && *s.Left < spent[s.Name] {
			out.limit = fmt.Sprintf("what is left of the allocation at site %s: %s, and it costs %s", s.Name,
				cost.Amount{Money: *s.Left, Unit: p.Unit()}, cost.Amount{Money: spent[s.Name], Unit: p.Unit()})
		}
	}
	pl.PeakCPUs, pl.CoreHours, pl.Billed, pl.Cost = out.peak, out.held.Hours(), out.billed.Hours(), total
	out.Point = pl.Point
	return out
}

// A change is an instant at which a pilot begins or ceases to count.
type change struct {
	at          corral.Seconds
	site        *plan.Site
	cpus, count int
}

// peaks returns the most cpus held at once, and the limit of a site that is broken at some time. A pilot counts from
// its submission, since it may start at any time; its cpus count while they are held.
func peaks(p plan.Problem, pilots []plan.Pilot) (peak int, limit string) {
	var changes []change
	for _, q := range pilots {
		site, cpus := p.Site(q.Site, q.Queue), q.HeldCPUs()
		changes = append(changes, change{q.Submit, site, 0, 1}, change{q.Start, site, cpus, 0}, change{q.End, site,
			-cpus, -1})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.cpus, b.cpus))
	})
	all, cpus, count := 0, map[string]int{}, map[string]int{}
	for _, c := range changes {
		name := c.site.Name
		all, cpus[name], count[name] = all+c.cpus, cpus[name]+c.cpus, count[name]+c.count
		peak = max(peak, all)
		switch {
		case cpus[name] > c.site.CPUs:
			limit = fmt.Sprintf("site %s: %d of at most %d cpus at once", name, cpus[name], c.site.CPUs)
		case count[name] > c.site.Pilots:
			limit = fmt.Sprintf("site %s: %d of at most %d pilots at once", name, count[name], c.site.Pilots)
		}
	}
	return peak, limit
}
