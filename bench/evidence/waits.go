package main

import (
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral/internal/cli/plot"
)

// shares are the quantiles that are checked.
var shares = []float64{0.5, 0.75, 0.9, 0.95}

// following is the number of jobs whose quantile a prediction is compared with.
const following = 200

// stride is the distance between two examined jobs.
const stride = 61

// A coverage describes how good predictions of one quantile were, as shares of the cases.
type coverage struct {
	cases      int
	within     float64 // the job itself waited no longer than the estimate; ideally equal to the quantile
	withinSafe float64 // the same for the bound
	above      float64 // the true quantile was no longer than the bound
	aboveEst   float64 // the same for the estimate
	mean       time.Duration
}

// covered replays part of a trace: at each examined job, quantiles are predicted from what was known.
func covered(t trace, from, to int) map[float64]coverage {
	all := map[float64]coverage{}
	for i := from; i < to; i += stride {
		estimate, bound := t.known(i, false), t.known(i, true)
		for _, share := range shares {
			c, waited, truth := all[share], t[i].waited, t.truth(i, following, share)
			guess, safe := estimate(share), bound(share)
			c.cases++
			c.mean += safe
			for _, x := range []struct {
				so  bool
				sum *float64
			}{{waited <= guess, &c.within}, {waited <= safe, &c.withinSafe}, {truth <= safe, &c.above},
				{truth <= guess, &c.aboveEst}} {
				if x.so {
					*x.sum++
				}
			}
			all[share] = c
		}
	}
	for share, c := range all {
		n := float64(c.cases)
		all[share] = coverage{c.cases, c.within / n, c.withinSafe / n, c.above / n, c.aboveEst / n,
			c.mean / time.Duration(c.cases)}
	}
	return all
}

// A tradeoff is the result of one rule for when to request pilots: how many come too late, and how long the others are
// held before they are needed.
type tradeoff struct {
	parameter float64
	missed    float64 // share of the cases
	idle      float64 // core-hours per case
}

// A prediction returns, from what was known when job i was submitted, how far ahead to request pilots, for a parameter.
type prediction func(i int) func(parameter float64) time.Duration

// ahead replays pilots of a trace's second half that are needed at a given time and requested earlier by the predicted
// wait: each waits like the next job of its class.
func ahead(t trace, parameters []float64, predict prediction) (all []tradeoff) {
	cases := 0
	all = make([]tradeoff, len(parameters))
	for i := len(t) / 2; i < len(t); i += stride {
		waited, ok := t.next(i, t[i].submitted)
		if !ok {
			continue
		}
		cases++
		by := predict(i)
		for k, parameter := range parameters {
			if early := by(parameter) - waited; early < 0 {
				all[k].missed++
			} else {
				all[k].idle += early.Hours() * float64(t[i].cpus)
			}
		}
	}
	for k := range all {
		all[k] = tradeoff{parameters[k], all[k].missed / float64(cases), all[k].idle / float64(cases)}
	}
	slices.SortFunc(all, func(a, b tradeoff) int {
		if a.missed < b.missed {
			return -1
		}
		return 1
	})
	return all
}

// idleAt returns how much a rule holds idle at a share of misses, interpolated between measured values; ok is false
// beyond them.
func idleAt(curve []tradeoff, missed float64) (idle float64, ok bool) {
	for k := 1; k < len(curve); k++ {
		if a, b := curve[k-1], curve[k]; a.missed <= missed && missed <= b.missed {
			if a.missed == b.missed {
				return min(a.idle, b.idle), true
			}
			return a.idle + (b.idle-a.idle)*(missed-a.missed)/(b.missed-a.missed), true
		}
	}
	return 0, false
}

// steps are the quantiles that are tried, and multiples the multiples of the mean.
var (
	steps     = []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975}
	multiples = []float64{0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12}
)

// byQuantile requests pilots by a quantile of the observed waits, or by its bound.
func byQuantile(t trace, bound bool) []tradeoff {
	return ahead(t, steps, func(i int) func(float64) time.Duration { return t.known(i, bound) })
}

// byMean requests them by a multiple of the mean of these waits.
func byMean(t trace) []tradeoff {
	return ahead(t, multiples, func(i int) func(float64) time.Duration {
		m := t.mean(i)
		return func(times float64) time.Duration { return time.Duration(times * float64(m)) }
	})
}

// waits shows the predictions of waits on a trace's second half.
func (d desk) waits(context.Context) error {
	t, err := readTrace(d.trace)
	if err != nil {
		return err
	}
	half := len(t) / 2
	d.say("## Waits\n\n%d jobs; predictions are made at every %dth of the second half, from waits ended by then.\n",
		len(t), stride)
	all := covered(t, half, len(t))
	quantile, bound, mean := byQuantile(t, false), byQuantile(t, true), byMean(t)
	if err := d.show("waits-coverage", coverageTable(all)); err != nil {
		return err
	}
	d.say("\nThe true quantile is that of the next %d jobs of similar size; %d cases.\n", following, all[0.5].cases)
	if err := d.show("waits-idle", idleTable(quantile, bound, mean)); err != nil {
		return err
	}
	d.say("\nAt equal misses:\n")
	if err := d.show("waits-equal-misses", equalMisses(quantile, mean)); err != nil {
		return err
	}
	return d.draw("waits", plot.Chart{Title: "Pilots that are asked for ahead of time",
		Subtitle: "each waits as the next job of its class on KTH-SP2 did",
		X:        "share of pilots that come too late", Y: "idle core-hours a pilot",
		Series: []plot.Series{line("by a quantile of waits", quantile), line("by its bound", bound),
			line("by a multiple of the mean", mean)}},
		coverageChart(all))
}

// coverageTable shows how often waits, and the true quantiles, were no longer than predicted for a share.
func coverageTable(all map[float64]coverage) results {
	t := results{{"share", "waited no longer than the estimate", "than the bound",
		"the true quantile was below the estimate", "below the bound", "mean bound"}}
	for _, share := range shares {
		c := all[share]
		t.add("%g|%.3f|%.3f|%.3f|%.3f|%s", share, c.within, c.withinSafe, c.aboveEst, c.above,
			c.mean.Round(time.Minute))
	}
	return t
}

// idleTable shows the misses and the idle time of each rule for requesting ahead of time, with one row for each rule
// and parameter. The rules have different numbers of parameters.
func idleTable(quantile, bound, mean []tradeoff) results {
	t := results{{"rule", "value", "missed", "idle core-hours"}}
	for _, way := range []struct {
		name  string
		curve []tradeoff
	}{{"quantile", quantile}, {"bound", bound}, {"mean ×", mean}} {
		for _, c := range way.curve {
			t.add("%s|%g|%.3f|%.1f", way.name, c.parameter, c.missed, c.idle)
		}
	}
	return t
}

// equalMisses compares quantiles with multiples of the mean that miss equally often. The multiple is between measured
// ones, so its idle time is interpolated; a quantile beyond them has no row.
func equalMisses(quantile, mean []tradeoff) results {
	t := results{{"missed", "idle core-hours by the quantile", "idle core-hours by the mean"}}
	for _, q := range quantile {
		if other, ok := idleAt(mean, q.missed); ok {
			t.add("%.3f|%.1f|%.1f", q.missed, q.idle, other)
		}
	}
	return t
}

func line(name string, curve []tradeoff) plot.Series {
	s := plot.Series{Name: name, Line: true, Dots: true}
	for _, c := range curve {
		s.At = append(s.At, plot.XY{X: c.missed, Y: c.idle})
	}
	return s
}

// coverageChart draws which share of jobs waited no longer than predicted for a share.
func coverageChart(all map[float64]coverage) plot.Chart {
	exact := plot.Series{Name: "as asked", Line: true, At: []plot.XY{{X: 0.45, Y: 0.45}, {X: 1, Y: 1}}}
	estimate := plot.Series{Name: "no longer than the estimate", Line: true, Dots: true}
	bound := plot.Series{Name: "no longer than the bound", Line: true, Dots: true}
	truth := plot.Series{Name: "true quantile below the bound", Line: true, Dots: true}
	for _, share := range shares {
		c := all[share]
		estimate.At = append(estimate.At, plot.XY{X: share, Y: c.within})
		bound.At = append(bound.At, plot.XY{X: share, Y: c.withinSafe})
		truth.At = append(truth.At, plot.XY{X: share, Y: c.above})
	}
	return plot.Chart{Title: "What predictions cover", X: "share that was asked for", Y: "share of cases",
		Series: []plot.Series{estimate, bound, exact, truth}}
}
