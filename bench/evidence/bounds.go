package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/bound"
)

// free returns a site without limits, waits and overheads.
func free() plan.Site {
	const much = plan.Unlimited
	return plan.Site{Name: "free", Host: corral.Resources{CPUs: 1, MemoryMiB: much, GPUs: much, DiskMiB: much},
		Hosts: 1, Pilots: much, CPUs: much, Walltime: plan.Unbounded, Wait: func(plan.Shape) time.Duration { return 0 },
		Tariff: plan.Tariff{Rate: plan.CoreHours.Rate, Billing: cost.Billing{Period: time.Hour}}}
}

// near reports whether a number of cpus is at most 5 % or one cpu above a bound.
func near(cpus, bound int) bool { return cpus <= bound+1 || float64(cpus) <= 1.05*float64(bound) }

// bounds makes plans with the fewest cpus for published workflows, within twice the critical path, and compares them
// with the minimum for any schedule.
func (d desk) bounds(ctx context.Context) error {
	all, err := readPublished(ctx, d.instances)
	if err != nil {
		return err
	}
	d.say("## Lower bounds\n")
	t := results{{"workflow", "tasks", "energetic", "lower bound", "plan", "plan ÷ bound"}}
	var ratios []float64
	atBound, nearBound, nearEnergy := 0, 0, 0
	for _, p := range all {
		w := p.work()
		for i := range w.Tasks {
			w.Tasks[i].Needs.CPUs = 1
		}
		problem := plan.Problem{Work: w, Sites: []plan.Site{free()}}
		deadline := 2 * w.Graph.CriticalPath(w.Runtimes())
		pl, err := planner.Make(problem, plan.Goal{Objective: plan.CPUs, Deadline: corral.Seconds(deadline)},
			planner.Options{Shape: 1, Context: ctx})
		if err != nil {
			return err
		}
		if !pl.Feasible {
			return errors.New(w.Name + ": " + pl.Reasons[0])
		}
		energy := bound.Energetic(problem, 0, deadline)
		ratio := float64(pl.PeakCPUs) / float64(*pl.LowerBound)
		t.add("%s|%d|%d|%d|%d|%.3f", w.Name, len(w.Tasks), energy, *pl.LowerBound, pl.PeakCPUs, ratio)
		ratios = append(ratios, ratio)
		for _, c := range []struct {
			so    bool
			count *int
		}{{pl.PeakCPUs == *pl.LowerBound, &atBound}, {near(pl.PeakCPUs, *pl.LowerBound), &nearBound},
			{near(pl.PeakCPUs, energy), &nearEnergy}} {
			if c.so {
				*c.count++
			}
		}
	}
	if err := d.show("bounds", t); err != nil {
		return err
	}
	x := intervalOf(ratios)
	d.say("\nOf %d plans %d are at the lower bound, %d within 5 %% or one cpu of it, %d of the energetic bound. "+
		"Plan ÷ bound: mean %.3f, standard deviation %.3f.", len(all), atBound, nearBound, nearEnergy, x.mean, x.sd)
	slices.Sort(ratios)
	s := plot.Series{Name: "published workflows, the nearest first", Dots: true}
	for i, ratio := range ratios {
		s.At = append(s.At, plot.XY{X: float64(i + 1), Y: ratio})
	}
	return d.draw("bounds", plot.Chart{Title: "Cpus of plans beside the fewest possible",
		Subtitle: "within twice the critical path", X: "workflow", Y: "plan ÷ lower bound", Series: []plot.Series{s,
			{Name: "the bound", Line: true, At: []plot.XY{{X: 0, Y: 1}, {X: float64(len(ratios) + 1), Y: 1}}}}})
}
