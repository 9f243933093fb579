package main

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// alphas are the trade-offs in the tables: the shortest makespan, the middle, and the least cost.
var alphas = []plan.Share{0, half, plan.Whole}

// typical is the thesis's drawn workflow for 256 processors: a task needs a twentieth of them.
var typical = plantest.Grid{Tasks: 100, Levels: 10, Runtime: 1000 * time.Second, Processors: 13, Parents: 2}

// grid plans drawn workflows on 256 processors: for several loads, task widths and sizes (figures 13 to 16), and with
// the thesis's method, which seeds no members of the first population. It asserts that at 85 % load plans with the
// middle trade-off take at most 0.85 of best effort's time (F14), and that the cheapest plans cost exactly as much as
// best effort. The cost of the middle plans depends on the drawn workflows: it is only printed.
func (d *desk) grid() error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	d.printf("\nWorkflows of levels on 256 processors, %s; ratios to best effort:\n\n", base.name)
	d.printf("| %-26s | load | α = 0: makespan | cost | α = 0.5: makespan | cost | α = 1: makespan | cost |\n",
		"workflow")
	d.printf("|---|---|---|---|---|---|---|---|\n")
	wider := func(processors int) plantest.Grid {
		g := typical
		g.Processors = processors
		return g
	}
	larger := func(tasks int) plantest.Grid {
		g := typical
		g.Tasks, g.Levels = tasks, int(math.Sqrt(float64(tasks)))
		return g
	}
	for _, row := range []struct {
		what string
		grid plantest.Grid
		load float64
		opts moga.Options
	}{
		{"100 tasks of 13 processors", typical, 0.65, moga.Options{}},
		{"the same", typical, 0.85, moga.Options{}},
		{"the same, nothing given", typical, 0.85, moga.Options{Published: true}},
		{"2 processors", wider(2), 0.65, moga.Options{}},
		{"6 processors", wider(6), 0.65, moga.Options{}},
		{"18 processors", wider(18), 0.65, moga.Options{}},
		{"200 tasks", larger(200), 0.65, moga.Options{}},
		{"400 tasks", larger(400), 0.65, moga.Options{}},
	} {
		all, err := d.levels(base.loaded(row.load), row.grid, row.opts)
		if err != nil {
			return err
		}
		d.printf("| %-26s | %.2f |", row.what, row.load)
		for _, a := range alphas {
			d.printf(" %s | %.3f |", ratioOf(all[a], makespans), ratioOf(all[a], costs).value)
		}
		d.printf("\n")
		if row.load == 0.85 && !row.opts.Published {
			d.claims(all)
		}
	}
	return nil
}

// claims checks grid's assertions on a table.
func (d *desk) claims(all table) {
	if r := ratioOf(all[half], makespans); r.high > 0.85 {
		d.breaks("100 tasks at 85 %% load take %s of best effort; the limit is 0.85", r)
	}
	for _, p := range all[plan.Whole] {
		if p.plan.Cost != p.best.Cost {
			d.breaks("the cheapest plan costs %s, and best effort %s", p.plan.Cost, p.best.Cost)
			break
		}
	}
}

// levels compares plans and best effort for a workflow that is drawn for each instant.
func (d *desk) levels(m machine, g plantest.Grid, o moga.Options) (table, error) {
	var cases []instance
	for k, q := range m.states(d.pick(30, 50)) {
		c, err := at(plantest.Levels(g, uint64(k)), q)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	o.Seed = 1
	return compare(cases, o, alphas...)
}

// sites plans a drawn workflow on two to six sites (figure 19): tasks of 14 processors, each with two parents, whose
// data takes 250 s to another site. Large and small sites alternate, each with its own drawn jobs, because the thesis's
// logs are not available. Its figures, 0.30 of best effort's makespan on two sites and 0.45 on six, are therefore not
// asserted. For comparison it also buys reservations at prices, task by task (figure 56).
func (d *desk) sites() error {
	type kind struct {
		processors int
		load       float64
	}
	kinds := []kind{{430, 0.88}, {128, 0.84}, {430, 0.76}, {128, 0.78}, {430, 0.63}, {128, 0.70}}
	instants := d.pick(30, 60)
	states := make([][]*queue.Queue, len(kinds))
	for i, k := range kinds {
		m := machine{Machine: queue.Machine{Processors: k.processors, Policy: queue.Conservative}}
		m.jobs = workload.Draw(6000, k.processors, k.load, uint64(i+1))
		states[i] = m.statesAt(instants, 20*24*time.Hour)
	}
	g := typical
	g.Processors = 14
	d.printf("\nSeveral sites, 100 tasks of 14 processors, 250 s between sites, trade-off 0.5, %d instants:\n\n",
		instants)
	d.printf("| sites | plan, h | best effort, h | makespan ÷ b. e. | cost ÷ b. e. " +
		"| at prices: makespan ÷ b. e. | cost ÷ b. e. |\n|---|---|---|---|---|---|---|\n")
	for n := 2; n <= len(kinds); n++ {
		var cases []instance
		for k := range instants {
			var queues []*queue.Queue
			for i := range n {
				queues = append(queues, states[i][k])
			}
			c, err := at(plantest.Levels(g, uint64(k)), queues...)
			if err != nil {
				return err
			}
			c.Transfer = func(int, int) time.Duration { return 250 * time.Second }
			cases = append(cases, c)
		}
		all, err := compare(cases, moga.Options{Seed: 1}, half)
		if err != nil {
			return err
		}
		pairs := all[half]
		bought := slices.Clone(pairs)
		for k, c := range cases {
			p, _, err := (pricing{d}).buy(c, half)
			if err != nil {
				return err
			}
			bought[k].plan = p.Point
		}
		d.printf("| %d | %s | %s | %s | %s | %s | %s |\n", n, spread(pairs, planned), spread(pairs, bestOf),
			ratioOf(pairs, makespans), ratioOf(pairs, costs), ratioOf(bought, makespans), ratioOf(bought, costs))
	}
	return nil
}
