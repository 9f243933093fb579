package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/corral-pilot/corral/internal/cli/plot"
)

// drawAll draws figures into a directory, with the published values as dots: how often each algorithm is the best, by
// the length of tasks, averaged over all kinds of ensembles; and the upper quartile of cost ÷ budget, by errors and
// delays.
func drawAll(dir string, all map[string][]played, was map[value]float64) error {
	best := func(s standing) float64 { return 100 * s.best }
	q3 := func(s standing) float64 { return quantile(s.costs, 0.75) }
	for how, panels := range all {
		for _, f := range []struct {
			figure, application, what, title, x string
			of                                  func(standing) float64
		}{
			{"6.7", "cybershake", "best", "share of cases with the best score, %", "factor of runtimes", best},
			{"6.7", "montage", "best", "share of cases with the best score, %", "factor of runtimes", best},
			{"6.8", "montage", "cost q3", "cost ÷ budget, upper quartile", "error of runtimes, %", q3},
			{"6.10", "montage", "cost q3", "cost ÷ budget, upper quartile", "delay of machines, s", q3},
		} {
			c := plot.Chart{Title: "Figure " + f.figure + ", " + how, Subtitle: f.application, X: f.x, Y: f.title}
			some := slices.DeleteFunc(slices.Clone(panels), func(p played) bool {
				return p.figure != f.figure || p.application != f.application
			})
			if len(some) == 0 {
				continue
			}
			for _, s := range some[0].all {
				line := series(some, s.algorithm, f.of)
				line.Name, line.Line = s.algorithm, true
				c.Series = append(c.Series, line)
			}
			for _, s := range some[0].all {
				dots := means(some, func(p played) (float64, bool) {
					v, ok := was[value{p.figure, p.application, string(p.kind), p.x, s.algorithm, f.what}]
					return v, ok
				})
				if dots.Name, dots.Dots = s.algorithm+", as published", true; len(dots.At) > 0 && how == "published" {
					c.Series = append(c.Series, dots)
				}
			}
			name := filepath.Join(dir, fmt.Sprintf("ensembles-%s-%s-%s.svg", f.figure, f.application, how))
			out, err := os.Create(name)
			if err != nil {
				return err
			}
			if err := plot.Write(out, plot.SVG, c); err != nil {
				return err
			}
			if err := out.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// series returns a value of an algorithm as a function of x.
func series(some []played, algorithm string, of func(standing) float64) plot.Series {
	return means(some, func(p played) (float64, bool) { return of(p.of(algorithm)), true })
}

// means returns the mean over panels with the same x.
func means(some []played, of func(played) (float64, bool)) (s plot.Series) {
	sums, counts := map[int]float64{}, map[int]int{}
	var order []int
	for _, p := range some {
		v, ok := of(p)
		if !ok {
			continue
		}
		if counts[p.x] == 0 {
			order = append(order, p.x)
		}
		sums[p.x] += v
		counts[p.x]++
	}
	slices.Sort(order)
	for _, x := range order {
		s.At = append(s.At, plot.XY{X: float64(x), Y: sums[x] / float64(counts[x])})
	}
	return s
}
