package montecarlo

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/baseline"
	"github.com/corral-pilot/corral/plan/sim"
)

// comparedTasks limits the work of a comparison: outcomes × tasks for each policy. mostCompared is the maximum number
// of outcomes.
const (
	comparedTasks = 20_000
	mostCompared  = 20
)

// A Way is the plan of an algorithm, or the reason why it made none.
type Way struct {
	By   plan.Algorithm
	Plan *plan.Plan
	Why  string
}

// Compare simulates a plan, those of other algorithms, and the policies of package baseline in the same outcomes, each
// policy with its defaults and with the best parameters of a small sweep. The plan is the first result; the others
// follow as given, and the policies in the order of Families. All policies request pilots of the plan's most frequent
// shape, at the site of that shape, within the site's limits. The best parameters are those that meet the deadline with
// the lowest sum of makespan and core-hours, each relative to the plan's.
//
// Present pilots are available to policies that request pilots, but not to single-task jobs. Compare returns nil if the
// workflow is too large, or if the plan has no pilots and thus no shape to request.
//
// If ctx is cancelled, Compare returns its cause.
func (m Model) Compare(ctx context.Context, pl *plan.Plan, seed uint64, others ...Way) ([]plan.Rival, error) {
	if len(m.Work.Tasks) > mostTasks || len(pl.Pilots) == 0 {
		return nil, nil
	}
	m.ctx = ctx
	c := comparison{m: m, goal: pl.Goal, seed: seed, n: min(mostCompared, max(3, comparedTasks/len(m.Work.Tasks)))}
	c.shape = usual(pl)
	c.plan = c.way(Way{By: cmp.Or(pl.Algorithm, plan.Staircase), Plan: pl})
	c.plan.Chosen = true
	all := []plan.Rival{c.plan}
	for _, w := range others {
		all = append(all, c.way(w))
	}
	width := c.width()
	all = append(all, c.single("none", "", 0))
	all = append(all, c.best("placeholder", func(n int, parameters string) plan.Rival {
		return c.single("placeholder", parameters, n)
	}, width)...)
	for _, f := range baseline.Families(width) {
		all = append(all, c.method(f.Default, width))
		var swept []plan.Rival
		for _, method := range f.Sweep {
			swept = append(swept, c.method(method, width))
		}
		all = append(all, c.least(swept)...)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	weigh(pl.Goal, all)
	return all, nil
}

// way simulates the plan of an algorithm.
func (c *comparison) way(w Way) plan.Rival {
	if w.Plan == nil {
		return plan.Rival{Policy: string(w.By), Planned: true, Why: w.Why}
	}
	r := c.rival(string(w.By), "", c.m.Outcomes(w.Plan, c.n, c.seed))
	r.Planned = true
	return r
}

// weigh computes the weights of rivals by a goal. Those that complete the workflow in less than half of the outcomes do
// not count for the least cost and makespan.
func weigh(goal plan.Goal, all []plan.Rival) {
	alpha, ok := goal.Alpha()
	if !ok {
		return
	}
	point := func(r plan.Rival) cost.Point {
		return cost.Point{Makespan: time.Duration(r.Makespan), Cost: r.Cost.Money}
	}
	var finished []plan.Candidate
	for _, r := range all {
		if r.Finished >= 0.5 {
			finished = append(finished, plan.Candidate{Point: point(r)})
		}
	}
	by := plan.Weigh(alpha, finished)
	for i := range all {
		if r := &all[i]; r.Why == "" && len(finished) > 0 {
			r.Weight = by.Of(point(*r))
		}
	}
}

// A comparison is the state of one comparison.
type comparison struct {
	m     Model
	goal  plan.Goal
	shape plan.Pilot
	plan  plan.Rival
	n     int
	seed  uint64
}

// usual returns the most frequent shape of a plan's hosts, as a pilot of one host with the longest walltime.
func usual(pl *plan.Plan) plan.Pilot {
	type shape struct {
		site, queue string
		host        corral.Resources
	}
	hosts := map[shape]int{}
	var most plan.Pilot
	var longest corral.Seconds
	for _, q := range pl.Pilots {
		s := shape{q.Site, q.Queue, q.Host()}
		hosts[s] += q.Hosts
		longest = max(longest, q.Walltime)
		if best := (shape{most.Site, most.Queue, most.Host()}); hosts[s] > hosts[best] {
			most = q
		}
	}
	return plan.Pilot{Site: most.Site, Queue: most.Queue,
		Shape: corral.Shape{Hosts: 1, CPUs: most.CPUs, MemoryMiB: most.MemoryMiB, GPUs: most.GPUs, Walltime: longest}}
}

// width returns the number of pilots that can be useful at once, within the site's limits.
func (c *comparison) width() int {
	s := c.m.Site(c.shape.Site, c.shape.Queue)
	n := (plan.Quickest(c.m.Problem).MostCPUs() + c.shape.CPUs - 1) / c.shape.CPUs
	return max(1, min(n, s.Pilots, s.CPUs/c.shape.CPUs))
}

// walltime returns the walltime that rivals request: a day, within the site's maximum. Rivals cannot predict how long
// they will need a pilot.
func (c *comparison) walltime() corral.Seconds {
	return corral.Seconds(min(24*time.Hour, c.m.Site(c.shape.Site, c.shape.Queue).Walltime))
}

// chanceAt returns the nth outcome, restricted to the site of the comparison.
func (c *comparison) chanceAt(n int) sim.Scenario {
	m := c.m
	m.Sites = []plan.Site{*c.m.Site(c.shape.Site, c.shape.Queue)}
	return m.chance(sim.WorkOf(m.Work), stream(c.seed, n))
}

// fewRequests is the number of pilots that a policy may request during an outcome, in addition to two for each task. A
// policy that requests more drains its pilots before they work, and may never finish.
const fewRequests = 100

// method simulates a policy.
func (c *comparison) method(method baseline.Method, most int) plan.Rival {
	shape := c.shape
	shape.Walltime = c.walltime()
	return c.rival(method.Name, method.Parameters, c.m.play(c.n, func(i int) sim.Scenario {
		s := c.chanceAt(i)
		s.Control, s.Every = method.Control(baseline.Setting{Pilot: shape, Most: most,
			Requests: fewRequests + 2*len(c.m.Work.Tasks)}), method.Every
		s.Patient = true
		return s
	}))
}

// single simulates pilots of one task each.
func (c *comparison) single(name, parameters string, placeholders int) plan.Rival {
	site := c.m.Site(c.shape.Site, c.shape.Queue)
	all := make([]Outcome, c.n)
	turn := make(chan int)
	done := make(chan struct{})
	workers := runtime.GOMAXPROCS(0)
	for range workers {
		go func() {
			for i := range turn {
				if c.m.context().Err() != nil {
					continue
				}
				r := baseline.Single(c.chanceAt(i), placeholders, site.CPUs)
				all[i] = Outcome{Makespan: r.Makespan, Held: r.Held, Work: r.Work, Requests: r.Requests,
					Peak: r.Peak, Cost: r.Cost, Finished: true}
			}
			done <- struct{}{}
		}()
	}
	for i := range c.n {
		turn <- i
	}
	close(turn)
	for range workers {
		<-done
	}
	return c.rival(name, parameters, all)
}

// best returns the results of a policy with a numeric parameter: at the workflow's width, and at the best smaller
// value.
func (c *comparison) best(name string, of func(n int, parameters string) plan.Rival, width int) []plan.Rival {
	all := []plan.Rival{of(width, "")}
	var swept []plan.Rival
	for part := 2; part <= 16 && width/part > 0; part *= 2 {
		swept = append(swept, of(width/part, fmt.Sprintf("%ss=%d", name, width/part)))
	}
	return append(all, c.least(swept)...)
}

// least returns a slice that contains only the best of the rivals, or an empty slice if there are no rivals.
func (c *comparison) least(all []plan.Rival) []plan.Rival {
	if len(all) == 0 {
		return nil
	}
	late := func(r plan.Rival) bool { return c.goal.Deadline > 0 && r.Makespan > c.goal.Deadline }
	score := func(r plan.Rival) float64 {
		return float64(r.Makespan)/math.Max(1, float64(c.plan.Makespan)) + r.CoreHours/math.Max(1e-9, c.plan.CoreHours)
	}
	return []plan.Rival{slices.MinFunc(all, func(a, b plan.Rival) int {
		if late(a) != late(b) {
			return map[bool]int{false: -1, true: 1}[late(a)]
		}
		return cmp.Or(cmp.Compare(b.Finished, a.Finished), cmp.Compare(score(a), score(b)))
	})}
}

// rival summarizes outcomes by their medians.
func (c *comparison) rival(policy, parameters string, all []Outcome) plan.Rival {
	r := plan.Rival{Policy: policy, Parameters: parameters}
	var held, work time.Duration
	var done []Outcome
	for _, o := range all {
		held, work = held+o.Held, work+o.Work
		if o.Finished {
			done = append(done, o)
		}
	}
	r.Finished = float64(len(done)) / float64(max(1, len(all)))
	r.Makespan = quantiles(done, func(o Outcome) corral.Seconds { return corral.Seconds(o.Makespan) }).Median
	r.CoreHours = quantiles(all, func(o Outcome) float64 { return o.Held.Hours() }).Median
	r.Requests = quantiles(all, func(o Outcome) int { return o.Requests }).Median
	r.PeakCPUs = quantiles(all, func(o Outcome) int { return o.Peak }).Median
	r.Cost = cost.Amount{Money: quantiles(all, func(o Outcome) cost.Money { return o.Cost }).Median, Unit: c.m.Unit()}
	if held > 0 {
		r.Waste = 1 - float64(work)/float64(held)
	}
	return r
}
