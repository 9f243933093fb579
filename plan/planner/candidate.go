package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/nodes"
)

// A candidate limits the hosts that a plan may use, before it is known which of them are needed at what time.
type candidate []share // sites in the order in which they are filled

// A share is a number of hosts with the same site and shape.
type share struct {
	site  *plan.Site
	host  corral.Resources
	count int
	slot  *Slot // the slot of the hosts; nil: they are available after a wait, for as long as the site allows
	stay  stay  // how long the hosts stay when they are idle
	ahead bool  // all hosts are filled by speed, the fastest first, also before present pilots

	least corral.Resources // tasks that need less of a component run on other hosts, see special
}

// An outcome is the result of evaluating a candidate.
type outcome struct {
	candidate candidate
	of        *planning // the planning that made it
	plan.Point
	held     time.Duration // cpus × time
	billed   time.Duration
	peak     int
	beside   int // cpus held at once together with the present pilots
	pilots   int
	slack    time.Duration // how much the times of one pilot's hosts may differ, see pilots
	late     time.Duration // delay of the plan's beginning relative to the schedule
	breach   string        // the bound of the goal that its pilots break; empty: none
	limit    string        // the limit that it violates; empty: none
	played   bool          // its figures are those of its execution
	executed *plan.Plan    // its execution, for large workflows; nil: to be executed again when it is chosen

	schedule *schedule // nil: the list schedule that evaluate makes
}

// evaluate simulates a candidate and measures the resulting plan. Larger pilots may wait longer than single hosts; in
// that case the plan begins later. If a site has a maintenance period, or hosts are in slots, the schedule is made
// again with the later beginning, because merely shifting the schedule could move hosts into the maintenance period or
// out of their slots.
func (p *planning) evaluate(c candidate) (outcome, *schedule) {
	begin := time.Duration(p.Goal.NotBefore)
	for range 5 {
		s := list(p.tasks, p.Cluster, p.lines(c, begin))
		if s.placed < len(p.Work.Tasks) {
			return outcome{candidate: c, of: p, limit: "a task fits none of its pilots"}, nil
		}
		if !s.staysThroughout() {
			return outcome{candidate: c, of: p, limit: "a static pilot would have to stay beyond its walltime"}, nil
		}
		o := p.gather(c, s)
		if o.late == 0 || !c.timed() && len(p.Present) == 0 {
			return o, s // present pilots cannot be shifted
		}
		begin += o.late
	}
	return outcome{candidate: c, of: p, limit: "the later its pilots are requested, the longer they wait"},
		nil
}

// timed reports whether the candidate depends on absolute times and cannot be shifted, because it uses a slot or a site
// with a maintenance period.
func (c candidate) timed() bool {
	return slices.ContainsFunc(c, func(s share) bool { return s.slot != nil || len(s.site.Closed) > 0 })
}

// gather makes pilots for a schedule. It accepts up to 2 % more core-hours for fewer pilots with more hosts each.
func (p *planning) gather(c candidate, s *schedule) outcome {
	best := p.measure(c, p.draft(s, 0))
	most := best.held + best.held/50
	for _, slack := range []time.Duration{s.makespan / 100, s.makespan / 20, s.makespan / 5, s.makespan} {
		o := p.measure(c, p.draft(s, slack))
		if p.Goal.Objective == plan.CPUs && (o.peak > best.peak || o.Makespan > best.Makespan) {
			continue
		}
		few := o.held <= most || p.Goal.MaxPilots > 0 && best.pilots > p.Goal.MaxPilots
		if o.slack = slack; best.limit != "" && o.limit == "" || o.pilots < best.pilots && few && o.limit == "" {
			best = o
		}
	}
	best.late = time.Duration(best.Makespan) - s.makespan
	return best
}

// lines returns the hosts of the present pilots and of a candidate. No host is requested before begin, nor earlier than
// the goal allows.
func (p *planning) lines(c candidate, begin time.Duration) []*line {
	begin = max(begin, time.Duration(p.Goal.NotBefore))
	all := presentLines(p.Present)
	if p.play != nil { // the dispatcher fills the hosts first that end first
		slices.SortStableFunc(all, func(a, b *line) int { return cmp.Compare(a.holds[0].latest, b.holds[0].latest) })
	}
	for _, share := range c {
		shape := plan.Shape{Hosts: 1, Host: share.host, Walltime: share.site.Walltime}
		ready := begin + share.site.Wait(shape) + share.site.Overhead
		if share.slot != nil {
			ready = max(begin, share.slot.From) + share.site.Overhead
		}
		most := keep(share.site, p.Cluster.Leave)
		if share.stay != whileBusy {
			most = plan.Unbounded
		}
		for range share.count {
			all = append(all, &line{site: share.site, host: share.host, ready: ready, slot: share.slot,
				leave: p.Cluster.Leave, keep: most, reserve: reserve(p), least: share.least})
			if p.Goal.Static || share.stay == throughout {
				all[len(all)-1].hold()
			}
		}
	}
	if len(c) > 0 && c[0].ahead {
		slices.SortStableFunc(all, func(a, b *line) int {
			return cmp.Compare(b.site.Speed.Factor(), a.site.Speed.Factor())
		})
	}
	return all
}

// shortestRelease is the minimum idle time for which releasing a pilot and requesting another is worthwhile: each
// request burdens the site, and may wait longer than expected.
const shortestRelease = time.Minute

// keep returns how long an idle host of a site is kept. Holding a cpu during a pause costs the duration of the pause.
// Requesting another cpu instead costs the time that the old cpu takes to leave and the new one takes to start, in
// which both are held but run no task.
func keep(s *plan.Site, leave time.Duration) time.Duration {
	return max(leave+s.Overhead, shortestRelease)
}

// draft makes a plan from a schedule, without its witness. If a pilot would have to be requested before the plan
// begins, because larger pilots wait longer, the whole plan is shifted.
func (p *planning) draft(s *schedule, slack time.Duration) *plan.Plan {
	pilots, _ := s.pilots(slack, p.parts)
	late := delay(pilots, p.Goal.NotBefore)
	shift(pilots, late)
	plan.Line(p.Sites, pilots, p.Goal.NotBefore)
	for i := range pilots {
		q := &pilots[i]
		if q.MinStay = p.Cluster.MinStay(*q); p.Goal.Static && q.Submit > p.Goal.NotBefore {
			q.Submit, q.Early = p.Goal.NotBefore, true
		}
	}
	return &plan.Plan{Workflow: p.Work.Name, Feasible: true, Goal: p.Goal, Clustering: p.clustering, Pilots: pilots,
		Point: plan.Point{Makespan: corral.Seconds(s.makespan + late)}}
}

// delay returns the shift that is necessary so that no pilot is requested before the given time.
func delay(pilots []plan.Pilot, notBefore corral.Seconds) (late time.Duration) {
	for _, q := range pilots {
		late = max(late, time.Duration(notBefore-q.Submit))
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

// measure computes the held resources and the cost of a plan's pilots, stores them in the plan, and finds the limit
// that the pilots violate.
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
			out.limit = fmt.Sprintf("site %s has %s of its allocation left, but the plan costs %s", s.Name,
				cost.Amount{Money: *s.Left, Unit: p.Unit()}, cost.Amount{Money: spent[s.Name], Unit: p.Unit()})
		}
	}
	if out.beside = out.peak; len(p.Present) > 0 {
		out.beside = plan.PeakBeside(pl.Pilots, p.Present)
	}
	out.breach = p.breach(pl, out.beside)
	pl.PeakCPUs, pl.CoreHours, pl.Billed, pl.Cost = out.peak, out.held.Hours(), out.billed.Hours(), total
	out.Point = pl.Point
	return out
}

// A change is an instant at which a pilot begins or ceases to count.
type change struct {
	at          corral.Seconds
	site        *plan.Site
	cpus, count int
	hosts       int
	host        corral.Resources // of the hosts
}

// peaks returns the maximum number of cpus held at once, and the limit of a site that is violated at some time. A pilot
// counts from its submission, because it may start at any time after that; its cpus count only while they are held.
func peaks(p plan.Problem, pilots []plan.Pilot) (peak int, limit string) {
	var changes []change
	for _, q := range pilots {
		site, cpus := p.Site(q.Site, q.Queue), q.HeldCPUs()
		changes = append(changes, change{at: q.Submit, site: site, count: 1},
			change{q.Start, site, cpus, 0, q.Hosts, q.Host()}, change{q.End, site, -cpus, -1, -q.Hosts, q.Host()})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.cpus, b.cpus))
	})
	all, cpus, count := 0, map[string]int{}, map[string]int{}
	held := map[*plan.Site]*nodes.Tally{}
	for _, c := range changes {
		name := c.site.Name
		if len(c.site.Nodes) > 0 && c.cpus != 0 {
			if held[c.site] == nil {
				held[c.site] = nodes.NewTally(c.site.Nodes)
			}
			held[c.site].Add(c.hosts, c.host)
			if c.hosts > 0 && limit == "" && !held[c.site].Fits() {
				limit = fmt.Sprintf("site %s: its hosts do not fit on the nodes at once", name)
			}
		}
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
