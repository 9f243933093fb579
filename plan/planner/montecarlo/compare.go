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
	"github.com/corral-pilot/corral/plan/planner/baseline"
	"github.com/corral-pilot/corral/plan/sim"
)

// comparedTasks bounds the work of a comparison: outcomes × tasks of each policy; mostCompared is how many outcomes
// there are at most.
const (
	comparedTasks = 20_000
	mostCompared  = 20
)

// Compare plays a plan and the policies of package baseline in the same outcomes, each policy at its defaults and at
// the best of a small sweep. The plan is the first; rivals follow in the order of Families. All of them ask for pilots
// of the plan's most frequent shape, at its site, within the site's limits. Best is what misses the deadline least
// often, and of these the one whose makespan and core-hours, each in units of the plan's, have the least sum.
//
// Pilots that are there are there for the policies that ask for pilots, too; jobs of one task each do not use them.
// Compare returns nil for a workflow that is too large, and for a plan without pilots, because nothing then says which
// shape to ask for.
//
// It ends with ctx; the error is the cause.
func (m Model) Compare(ctx context.Context, pl *plan.Plan, seed uint64) ([]plan.Rival, error) {
	if len(m.Work.Tasks) > mostTasks || len(pl.Pilots) == 0 {
		return nil, nil
	}
	m.ctx = ctx
	c := comparison{m: m, goal: pl.Goal, seed: seed, n: min(mostCompared, max(3, comparedTasks/len(m.Work.Tasks)))}
	c.shape = usual(pl)
	c.plan = rival("plan", "", m.Outcomes(pl, c.n, seed))
	width := c.width()
	all := []plan.Rival{c.plan, c.single("none", "", 0)}
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
	return all, nil
}

// A comparison is under way.
type comparison struct {
	m     Model
	goal  plan.Goal
	shape plan.Pilot
	plan  plan.Rival
	n     int
	seed  uint64
}

// usual is the shape of most of a plan's hosts, as one host with the longest walltime.
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
	return plan.Pilot{Site: most.Site, Queue: most.Queue, Hosts: 1, CPUs: most.CPUs, MemoryMiB: most.MemoryMiB,
		GPUs: most.GPUs, Walltime: longest}
}

// width is how many pilots can be of use at once, within the site's limits.
func (c *comparison) width() int {
	s := c.m.Site(c.shape.Site, c.shape.Queue)
	n := (plan.Quickest(c.m.Problem).MostCPUs() + c.shape.CPUs - 1) / c.shape.CPUs
	return max(1, min(n, s.Pilots, s.CPUs/c.shape.CPUs))
}

// walltime is what rivals ask for: a day, or what the site gives; they do not know how long they need a pilot.
func (c *comparison) walltime() corral.Seconds {
	return corral.Seconds(min(24*time.Hour, c.m.Site(c.shape.Site, c.shape.Queue).Walltime))
}

// chanceAt is the nth outcome at the site of the comparison alone.
func (c *comparison) chanceAt(n int) sim.Scenario {
	m := c.m
	m.Sites = []plan.Site{*c.m.Site(c.shape.Site, c.shape.Queue)}
	return m.chance(Spec(m.Work), stream(c.seed, n))
}

// method plays a policy.
func (c *comparison) method(method baseline.Method, most int) plan.Rival {
	shape := c.shape
	shape.Walltime = c.walltime()
	return rival(method.Name, method.Parameters, c.m.play(c.n, func(i int) sim.Scenario {
		s := c.chanceAt(i)
		s.Control, s.Every = method.Control(baseline.Setting{Pilot: shape, Most: most}), method.Every
		return s
	}))
}

// single plays pilots of one task each.
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
				all[i] = Outcome{Makespan: r.Makespan, Held: r.Held, Work: r.Work, Requests: r.Requests, Finished: true}
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
	return rival(name, parameters, all)
}

// best returns a policy that has a number at that of the workflow's width, and at the best of smaller ones.
func (c *comparison) best(name string, of func(n int, parameters string) plan.Rival, width int) []plan.Rival {
	all := []plan.Rival{of(width, "")}
	var swept []plan.Rival
	for part := 2; part <= 16 && width/part > 0; part *= 2 {
		swept = append(swept, of(width/part, fmt.Sprintf("%ss=%d", name, width/part)))
	}
	return append(all, c.least(swept)...)
}

// least returns the best of some rivals, none of none.
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

// rival sums outcomes up by their medians.
func rival(policy, parameters string, all []Outcome) plan.Rival {
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
	if held > 0 {
		r.Waste = 1 - float64(work)/float64(held)
	}
	return r
}
