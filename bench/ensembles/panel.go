package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/sim"
)

// A panel contains the cases of one bar or box of a figure.
type panel struct {
	figure string
	family
	x      int // the factor of runtimes, the error in percent, or the delay in seconds
	spread sim.Spread
	delay  time.Duration
}

// chance returns a function that sets the random effects for a case of a panel.
func (n panel) chance(draws int) func(*problem, int) {
	return func(p *problem, seed int) {
		p.Err(n.spread, uint64(seed))
		p.Delay = func(int) time.Duration { return n.delay }
		p.expected = rehearsal.Problem{Delay: n.delay, Spread: n.spread, Seed: 1 << 32}
		if n.spread.Law != "" {
			p.expected.Draws = draws
		}
	}
}

// A standing is the result of an algorithm in a panel.
type standing struct {
	algorithm        string
	best, strict     float64 // shares of the cases in which it has the best score, and has it alone
	over             float64 // share in which it costs more than the budget
	asGood           float64 // share in which its score is no worse than that of WA-DPDS
	costs, makespans []float64
	withLate         []float64 // makespans that include tasks which end after the deadline, as published
}

// standings simulates a panel.
func (d desk) standings(n panel, algorithms []algorithm) []standing {
	all, cases := make([]standing, len(algorithms)), 0.0
	aware := slices.IndexFunc(algorithms, func(a algorithm) bool { return a.name == "WA-DPDS" })
	d.sweep(n.family, n.chance(d.draws), algorithms, func(p problem, results []result) {
		top := slices.MaxFunc(results, func(a, b result) int { return a.score.Compare(b.score) }).score
		cases++
		alone := 0
		for _, r := range results {
			if r.score == top {
				alone++
			}
		}
		for i, r := range results {
			s := &all[i]
			s.costs = append(s.costs, r.cost.Units()/p.budget.Units())
			s.makespans = append(s.makespans, float64(r.makespan)/float64(p.Deadline))
			s.withLate = append(s.withLate, float64(r.withLate)/float64(p.Deadline))
			if r.cost > p.budget {
				s.over++
			}
			if r.score.Compare(results[aware].score) >= 0 {
				s.asGood++
			}
			if r.score == top {
				s.best++
				if alone == 1 {
					s.strict++
				}
			}
		}
	})
	for i, a := range algorithms {
		s := &all[i]
		s.algorithm, s.best, s.strict, s.over = a.name, s.best/cases, s.strict/cases, s.over/cases
		s.asGood /= cases
		slices.Sort(s.costs)
		slices.Sort(s.makespans)
		slices.Sort(s.withLate)
	}
	return all
}

// quantile returns a quantile of a sorted list, by the nearest rank.
func quantile(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1)+0.5)] }

// whisker returns the largest value within one and a half times the interquartile range above the upper quartile, which
// is the end of a box plot's whisker (Tukey).
func whisker(sorted []float64) float64 {
	low, high := quantile(sorted, 0.25), quantile(sorted, 0.75)
	at, _ := slices.BinarySearch(sorted, high+1.5*(high-low)+1e-9)
	return sorted[at-1]
}

// head prints the header of a table of standings.
func head(w io.Writer) {
	fmt.Fprintln(w, "| figure | application | ensemble | x | algorithm | best, % | alone, % |"+
		" no worse than WA-DPDS, % | over budget, % | cost ÷ budget: quartiles, whisker |"+
		" makespan ÷ deadline: median | with late tasks |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|")
}

// show prints the results of algorithms, with published values in brackets.
func (n panel) show(w io.Writer, all []standing, published map[value]float64) {
	for _, s := range all {
		was := func(what, format string) string {
			v, ok := published[value{n.figure, n.application, string(n.kind), n.x, s.algorithm, what}]
			if !ok {
				return ""
			}
			return " (" + fmt.Sprintf(format, v) + ")"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d | %s | %.1f%s | %.1f | %.1f | %.1f |"+
			" %.3f%s %.3f%s %.3f%s %.3f%s | %.3f | %.3f%s |\n",
			n.figure, n.application, n.kind, n.x, s.algorithm, 100*s.best, was("best", "%.1f"), 100*s.strict,
			100*s.asGood, 100*s.over,
			quantile(s.costs, 0.25), was("cost q1", "%.3f"), quantile(s.costs, 0.5), was("cost median", "%.3f"),
			quantile(s.costs, 0.75), was("cost q3", "%.3f"), whisker(s.costs), was("cost whisker", "%.3f"),
			quantile(s.makespans, 0.5), quantile(s.withLate, 0.5), was("makespan median", "%.3f"))
	}
}

// applications are the thesis's, in its order.
var applications = []string{"sipht", "ligo", "epigenomics", "montage", "cybershake"}

// panels returns the panels of a figure.
func (d desk) panels(figure string) (all []panel) {
	both := []string{"cybershake", "montage"}
	montage := family{"montage", ensemble.UniformUnsorted, 1}
	switch figure {
	case "6.6":
		for _, application := range applications {
			for _, kind := range ensemble.Kinds {
				all = append(all, panel{figure: figure, family: family{application, kind, 1}, x: 1})
			}
		}
	case "late": // runtimes err and machines are late, which tests the rehearsal and the guard
		for _, application := range applications {
			for _, kind := range d.kinds() {
				for _, e := range []int{20, 50} {
					all = append(all, panel{figure: figure, family: family{application, kind, 1}, x: e,
						spread: sim.Spread{Law: "uniform", Size: float64(e) / 100}, delay: 300 * time.Second})
				}
			}
		}
	case "6.7":
		for _, application := range both {
			for _, kind := range ensemble.Kinds {
				for _, factor := range d.some(1, 2, 4, 8, 16) {
					longer := family{application, kind, int64(factor)}
					all = append(all, panel{figure: figure, family: longer, x: factor})
				}
			}
		}
	case "6.8":
		for _, e := range d.some(0, 1, 10, 20, 50) {
			n := panel{figure: figure, family: montage, x: e}
			if e > 0 {
				n.spread = sim.Spread{Law: "uniform", Size: float64(e) / 100}
			}
			all = append(all, n)
		}
	case "6.10":
		for _, s := range d.some(0, 30, 90, 300, 600) {
			all = append(all, panel{figure: figure, family: montage, x: s, delay: time.Duration(s) * time.Second})
		}
	}
	return slices.DeleteFunc(all, func(n panel) bool { return !slices.Contains(d.applications, n.application) })
}

// kinds returns all kinds of ensembles with -long; otherwise the kind used in the figures on errors, and one with large
// workflows.
func (d desk) kinds() []ensemble.Kind {
	if d.long {
		return ensemble.Kinds
	}
	return []ensemble.Kind{ensemble.UniformUnsorted, ensemble.ParetoSorted}
}

// some omits every other of five values unless -long is given.
func (d desk) some(x ...int) []int {
	if d.long {
		return x
	}
	return []int{x[0], x[2], x[4]}
}
