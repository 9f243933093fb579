package main

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/workflow/profile"
)

// fewestRuns is the minimum number of runs of an application for estimating one of them from the others.
const fewestRuns = 5

// number formats a share for tables.
func number(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

// estimates estimates each run of an application from its other runs: by the mean of each kind of task, which is the
// usual baseline, and by the model selected from the other runs.
func (d desk) estimates(ctx context.Context) error {
	all, err := readPublished(ctx, d.instances)
	if err != nil {
		return err
	}
	runs := map[string]*profile.Profile{}
	count := map[string]int{}
	for _, p := range all {
		app := p.application()
		if runs[app] == nil {
			runs[app] = profile.New()
		}
		run, err := profile.Of(profile.Samples(p.flow, p.name()))
		if err == nil {
			err = runs[app].Merge(run)
		}
		if err != nil {
			return err
		}
		count[app]++
	}
	d.say("## Estimates\n")
	t := results{{"application", "runs", "error by the mean", "error", "change"}}
	var changes []float64
	before := plot.Series{Name: "by the mean", Dots: true}
	after := plot.Series{Name: "by the model that is chosen", Dots: true}
	for _, app := range slices.Sorted(maps.Keys(runs)) {
		if count[app] < fewestRuns {
			continue
		}
		var wrong, byMean, actual float64
		for _, s := range profile.Validate(runs[app], nil) {
			wrong, byMean, actual = wrong+s.Wrong, byMean+s.WrongByMean, actual+s.Actual
		}
		if byMean == 0 {
			continue // no runtime was measured
		}
		changes = append(changes, wrong/byMean-1)
		t.add("%s|%d|%.1f %%|%.1f %%|%+.1f %%", app, count[app], 100*byMean/actual, 100*wrong/actual,
			100*(wrong/byMean-1))
		x := float64(len(changes))
		before.At = append(before.At, plot.XY{X: x, Y: 100 * byMean / actual})
		after.At = append(after.At, plot.XY{X: x, Y: 100 * wrong / actual})
	}
	if len(changes) == 0 {
		d.say("\nNo application in %s has %d runs: name a directory with more using -instances.", d.instances,
			fewestRuns)
		return nil
	}
	if err := d.show("estimates", t); err != nil {
		return err
	}
	x := intervalOf(changes)
	d.say("\nThe error is the sum of misses as a part of the runtimes, each run being estimated from the others of "+
		"its application. Change, of %d applications: mean %+.1f %%, standard deviation %.1f points, at worst "+
		"%+.1f %%.",
		len(changes), 100*x.mean, 100*x.sd, 100*slices.Max(changes))
	return d.draw("estimates", plot.Chart{Title: "Runs that are estimated from others",
		X: "application, in the table's order", Y: "misses, % of the runtimes",
		Series: []plot.Series{before, after}})
}
