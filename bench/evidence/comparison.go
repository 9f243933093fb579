package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
)

// mostCompared limits the number of tasks of a published workflow in the comparison: policies are simulated event by
// event.
const mostCompared = 125

// sure is the confidence with which the plans must meet their deadlines, which are twice the makespan of the fastest
// plan.
const sure = 0.9

// judged is the number of outcomes for the confidence: fewer than for users, because there are many plans.
const judged = 200

// A pairing contains one policy's results, each time divided by the plan's result for the same workflow in the same
// outcomes.
type pairing struct {
	name                 string
	longer, dearer, both []float64
	late                 []float64 // 1: at least half of the outcomes end after the deadline
	waste, requests      []float64
	finished             []float64
}

func (p *pairing) add(plan, rival plan.Rival, deadline corral.Seconds) {
	longer := float64(rival.Makespan) / float64(plan.Makespan)
	dearer := rival.CoreHours / plan.CoreHours
	p.longer, p.dearer, p.both = append(p.longer, longer), append(p.dearer, dearer), append(p.both, (longer+dearer)/2)
	p.waste, p.requests = append(p.waste, rival.Waste), append(p.requests, float64(rival.Requests))
	p.finished = append(p.finished, rival.Finished)
	late := 0.0
	if rival.Makespan > deadline {
		late = 1
	}
	p.late = append(p.late, late)
}

// A table contains the pairings of all policies, in order of appearance.
type table struct {
	rows  []*pairing
	named map[string]*pairing
}

func (t *table) add(rivals []plan.Rival, deadline corral.Seconds) {
	for k, r := range rivals {
		name := r.Policy
		if k > 0 && rivals[k-1].Policy == r.Policy {
			name += ", best"
		}
		if t.named[name] == nil {
			t.named[name] = &pairing{name: name}
			t.rows = append(t.rows, t.named[name])
		}
		t.named[name].add(rivals[0], r, deadline)
	}
}

// comparison simulates plans that meet a deadline with a confidence for the least core-hours, and nine policies that
// ignore deadlines, each with its defaults and with the best values of a small sweep.
func (d desk) comparison(ctx context.Context) error {
	all, err := readPublished(ctx, d.instances)
	if err != nil {
		return err
	}
	t := table{named: map[string]*pairing{}}
	rng := rand.New(rand.NewPCG(9, 30))
	pairs := 0
	for i := 0; pairs < d.cases && i < 20*d.cases; i++ {
		p := all[i%len(all)]
		if len(p.flow.Tasks) > mostCompared {
			continue
		}
		m := around(rng, scaled(p.work()))
		deadline, rivals, err := compare(ctx, m, uint64(i))
		if err != nil {
			return err
		}
		if len(rivals) > 0 {
			pairs++
			t.add(rivals, deadline)
		}
	}
	return d.compared(t.rows, pairs)
}

// compare makes one plan and simulates it and the policies. It returns no rivals if no plan reaches the confidence.
func compare(ctx context.Context, m montecarlo.Model, seed uint64) (corral.Seconds, []plan.Rival, error) {
	m.Exact = judged
	soonest, err := planner.Make(m.Problem, plan.Goal{Objective: plan.Makespan}, planner.Options{Context: ctx})
	if err != nil {
		return 0, nil, err
	}
	goal := plan.Goal{Objective: plan.Cost, Deadline: soonest.Makespan * 2, Confidence: sure}
	pl, err := m.Make(ctx, goal, planner.Options{Seed: seed})
	if err != nil || !pl.Feasible {
		return 0, nil, err
	}
	rivals, err := m.Compare(ctx, pl, seed)
	return goal.Deadline, rivals, err
}

// scaled lengthens a workflow so that its longest task takes at least ten minutes and is worth a pilot: some published
// workflows were run on small inputs.
func scaled(w plan.Work) plan.Work {
	var longest time.Duration
	for i := range w.Tasks {
		longest = max(longest, w.Tasks[i].Runtime)
		w.Tasks[i].Needs = corral.Resources{CPUs: 1}
	}
	if longest == 0 || longest >= 10*time.Minute {
		return w
	}
	by := float64(10*time.Minute) / float64(longest)
	for i := range w.Tasks {
		w.Tasks[i].Runtime = time.Duration(by * float64(w.Tasks[i].Runtime)).Round(time.Millisecond)
	}
	return w
}

// compared prints the results of the pairs.
func (d desk) compared(rows []*pairing, pairs int) error {
	d.say("## Comparison\n\nPaired over %d workflows, each divided by the plan's result: mean ± half of its "+
		"95 %% interval (standard deviation).\n", pairs)
	t := results{{"policy", "makespan", "core-hours", "mean of both", "late", "waste", "jobs", "completed"}}
	mean := plot.Series{Name: "mean of makespan and core-hours, plan = 1", Dots: true}
	low := plot.Series{Name: "its 95 % interval, lower end", Dots: true}
	high := plot.Series{Name: "upper end", Dots: true}
	for k, p := range rows {
		t.add("%s|%s|%s|%s|%.0f %%|%.0f %%|%.0f|%.3f", p.name, intervalOf(p.longer),
			intervalOf(p.dearer), intervalOf(p.both), 100*intervalOf(p.late).mean, 100*intervalOf(p.waste).mean,
			intervalOf(p.requests).mean, intervalOf(p.finished).mean)
		x, at := intervalOf(p.both), float64(k)
		mean.At = append(mean.At, plot.XY{X: at, Y: x.mean})
		low.At = append(low.At, plot.XY{X: at, Y: x.mean - x.half})
		high.At = append(high.At, plot.XY{X: at, Y: x.mean + x.half})
	}
	if err := d.show("comparison", t); err != nil {
		return err
	}
	return d.draw("comparison", plot.Chart{Title: "Policies beside plans", Y: "plan = 1",
		X: "policy, in the table's order", Series: []plot.Series{mean, low, high}})
}
