package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats"
)

// The limits of published workflows, in tasks.
const (
	leastTasks = 10
	mostTasks  = 250
)

// A source draws problems. Their kinds take turns: the problems of the planner's own tests, workflows with heavy tails,
// and published workflows, if there are any; each of the latter two at sites of many kinds.
type source struct {
	published []plan.Work
	nodes     bool // sites have nodes, and tasks needs of several kinds
}

// read reads the published workflows of up to mostTasks tasks below a directory.
func (s *source) read(ctx context.Context, dir string) error {
	// The generated workflows come in five instances of each of twelve sizes.
	large := regexp.MustCompile(`\.n\.(\d+)\.[1-4]\.|\.n\.([3-9]\d\d|\d{4,})\.|_(997|\d{4})\.`)
	return filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		name := d.Name()
		known := strings.HasSuffix(name, ".json.gz") || strings.HasSuffix(name, ".dax.gz") ||
			strings.HasSuffix(name, ".xml.gz")
		if err != nil || d.IsDir() || !known || large.MatchString(name) {
			return err
		}
		flow, _, err := formats.ReadFile(ctx, file, workflow.Options{})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // some of the collections contain examples of what is refused
			return nil
		}
		w := plan.Work{Name: strings.SplitN(name, ".gz", 2)[0], Graph: flow.Graph}
		var sum time.Duration
		for _, t := range flow.Tasks {
			needs := corral.Resources{CPUs: max(1, t.CPUs), MemoryMiB: min(t.MemoryMiB, 4000)}
			w.Tasks = append(w.Tasks, plan.Task{ID: t.ID, Kind: t.Name, Needs: needs,
				Runtime: t.Estimate.Round(time.Millisecond)})
			sum += t.Estimate
		}
		if n := len(w.Tasks); leastTasks <= n && n <= mostTasks && sum > 0 {
			s.published = append(s.published, w)
		}
		return nil
	})
}

// problem draws the problem of a number, and says of what kind it is.
func (s *source) problem(number int) (p plan.Problem, kind string, err error) {
	rng := rand.New(rand.NewPCG(uint64(number), 'w'))
	kinds := 3
	if len(s.published) == 0 {
		kinds = 2
	}
	switch number % kinds {
	case 0:
		kind = "tests"
		p, err = plantest.Problem(uint64(number))
	case 1:
		kind = "heavy"
		p, err = s.heavy(rng, uint64(number))
	default:
		p.Work = s.published[rng.IntN(len(s.published))]
		kind = p.Work.Name
		p.Work.Tasks = slices.Clone(p.Work.Tasks)
		by := []time.Duration{1, 10, 60}[rng.IntN(3)] // some were run on small inputs
		for i := range p.Work.Tasks {
			t := p.Work.Task(i)
			t.Runtime = min(by*t.Runtime, longest)
		}
		p.Sites, p.Cluster = sites(rng), cluster
	}
	if err != nil {
		return p, kind, err
	}
	for i := range p.Work.Tasks { // the player reads sizes of files, and a drawn task has none
		p.Work.Task(i).Bytes = 0
	}
	for i := range p.Sites {
		p.Sites[i].Transfer = plan.Transfer{}
	}
	if s.nodes {
		onNodes(&p, number)
	} else if number%4 == 3 {
		plantest.AddPresent(&p, uint64(number))
	}
	return p, kind, nil
}

// cluster is an embedded cluster.
var cluster = plan.Cluster{Hop: 20 * time.Millisecond, Leave: time.Second}

// longest is the longest runtime that is drawn: heavier tails would make each problem one of a single task.
const longest = 16 * time.Hour

// heavy draws a workflow whose runtimes have a heavy tail: lognormal with a deviation of 1 to 1.5, or Pareto with an
// exponent of 1.2 to 2. In a third of them tasks need up to four cpus and up to 8 GiB.
func (s *source) heavy(rng *rand.Rand, seed uint64) (p plan.Problem, err error) {
	if p.Work = plantest.Layers(rng, 15+rng.IntN(100)); rng.IntN(2) == 0 {
		kind := plantest.Applications[rng.IntN(len(plantest.Applications))]
		if p.Work, err = plantest.Draw(kind, 30+rng.IntN(90), seed); err != nil {
			return p, err
		}
	}
	sigma, exponent, scale := 1+rng.Float64()/2, 1.2+0.8*rng.Float64(), 30+300*rng.Float64()
	pareto, large := rng.IntN(2) == 0, rng.IntN(3) == 0
	for i := range p.Work.Tasks {
		t := p.Work.Task(i)
		took := scale * math.Exp(sigma*rng.NormFloat64())
		if pareto {
			took = scale * math.Pow(1-rng.Float64(), -1/exponent)
		}
		t.Runtime = min(longest, time.Duration(took*float64(time.Second)).Round(time.Millisecond))
		t.Needs.DiskMiB = 0
		if large {
			t.Needs.CPUs, t.Needs.MemoryMiB = 1+rng.IntN(4), 100<<rng.IntN(7)
		}
	}
	p.Sites, p.Cluster = sites(rng), cluster
	return p, nil
}

// sites draws one to three sites that differ in speed, waits, prices, billing and limits. Some hand out whole hosts.
func sites(rng *rand.Rand) (all []plan.Site) {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	for i := range 1 + rng.IntN(3) {
		cpus := pick(4, 8, 16, 48)
		s := plan.Site{Name: []string{"near", "far", "third"}[i],
			Host: corral.Resources{CPUs: cpus, MemoryMiB: 4000 * cpus, GPUs: 0, DiskMiB: plan.Unlimited},
			// A pilot on as many hosts as a site allows must not exceed its cpus.
			Hosts: pick(1, 4, 20), Pilots: pick(2, 4, 10, 50), CPUs: max(4*cpus, pick(32, 64, 200)),
			Walltime: time.Duration(pick(1, 4, 12, 24, 72)) * time.Hour, Overhead: time.Duration(pick(5, 10, 60)) *
				time.Second, Margin: 70 * time.Second,
			Tariff: plan.Tariff{Rate: cost.Rate{Price: cost.Money(10_000 * (1 + rng.IntN(10))), Unit: "USD",
				Per: cost.CPUHour},
				Billing: []cost.Billing{{}, {}, {Period: time.Minute}, {Period: time.Hour},
					{Minimum: 10 * time.Minute, Period: time.Second}}[rng.IntN(5)]}}
		if rng.IntN(4) == 0 { // whole hosts
			rate := &s.Tariff.Rate
			rate.Per, rate.Price = cost.HostHour, rate.Price*cost.Money(cpus)
		}
		if rng.IntN(3) == 0 {
			s.Speed = []corral.Speed{0.5, 0.7, 0.9}[rng.IntN(3)]
		}
		wait := time.Duration(pick(0, 1, 5, 30)) * time.Minute
		s.Wait = func(shape plan.Shape) time.Duration {
			if shape.Hosts*shape.Host.CPUs > 16 { // large pilots wait longer
				return 3 * wait
			}
			return wait
		}
		all = append(all, s)
	}
	return all
}

// frame returns a plan that assumes all of a problem's sites and has no pilots: the input of the player's own list
// schedules.
func frame(p plan.Problem) (*plan.Plan, error) {
	sizes := &plan.Plan{Feasible: true}
	for i := range p.Sites {
		for _, cpus := range []int{16, 1 << 20} { // waits change at the first
			q := plan.Pilot{Site: p.Sites[i].Name, Queue: p.Sites[i].Queue}
			q.Hosts, q.CPUs = 1, cpus
			sizes.Pilots = append(sizes.Pilots, q)
		}
	}
	pl := &plan.Plan{Feasible: true}
	pl.Assumed = plan.Assume(p, sizes, "0")
	pl.Cost.Unit = p.Unit()
	for k, q := range p.Present {
		for _, r := range q.Running {
			t := p.Work.Task(r.Task)
			pl.Schedule = append(pl.Schedule, plan.Placement{Task: r.Task, ID: t.ID, Pilot: k, Host: r.Host,
				End: corral.Seconds(q.Pace.Takes(*t))})
		}
	}
	if len(p.Sites) == 0 {
		return nil, errors.New("the problem has no sites")
	}
	return pl, nil
}

// name names a problem for messages.
func name(number int, kind string) string { return fmt.Sprintf("problem %d (%s)", number, kind) }
