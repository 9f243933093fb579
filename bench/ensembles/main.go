// Command ensembles compares the algorithms for ensembles of workflows by how often each has the best score, for each
// application and kind of ensemble (Juve 2012, figure 6.6).
//
//	go run ./bench/ensembles                                     # small
//	go run ./bench/ensembles -workflows 50 -points 10 -seeds 10  # as published
//
// None of the figures but the times is one of this machine: the same command prints the same numbers anywhere.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/ensemble"
	"github.com/corral-pilot/corral/ensemble/recipe"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner/rehearsal"
	"github.com/corral-pilot/corral/sim"
)

// A desk is where experiments are made.
type desk struct {
	stdout    io.Writer
	source    *source
	workflows int // of an ensemble
	points    int // budgets, and deadlines
	seeds     int
}

func main() { rig.Main(execute) }

func execute(_ context.Context, args []string, stdout, stderr io.Writer) int {
	d := desk{stdout: stdout, source: &source{known: map[string]plan.Work{}}}
	f := flag.NewFlagSet("ensembles", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&d.source.dir, "dax", "", "`directory` of generated workflows; without it they are drawn")
	f.IntVar(&d.source.instances, "instances", 20, "of each size")
	f.IntVar(&d.workflows, "workflows", 20, "of an ensemble")
	f.IntVar(&d.points, "points", 5, "budgets and deadlines")
	f.IntVar(&d.seeds, "seeds", 2, "ensembles of a kind")
	errs := f.String("error", "0", "by which `SPREAD` runtimes differ from their estimates")
	delay := f.Duration("delay", 0, "until a machine is ready")
	published := f.Bool("published", false, "the three algorithms as their authors' program has them")
	draws := f.Int("draws", 0, "outcomes that a rehearsal draws")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has said why
	}
	spread, err := sim.ParseSpread(*errs)
	if err != nil {
		fmt.Fprintln(stderr, "ensembles: "+err.Error())
		return rig.Misuse
	}
	algorithms := corrected
	if *published {
		algorithms = asPublished
	}
	chance := func(p *problem, seed int) {
		p.Err(spread, uint64(seed))
		p.Delay = func(int) time.Duration { return *delay }
		p.expected = rehearsal.Problem{Delay: *delay, Spread: spread, Draws: *draws, Seed: math.MaxUint32}
	}
	fmt.Fprintf(stdout, "%-30s", "best score, % of cases")
	for _, a := range algorithms {
		fmt.Fprintf(stdout, " %14s", a.name)
	}
	fmt.Fprintln(stdout)
	for _, application := range recipe.Applications {
		for _, kind := range ensemble.Kinds {
			fmt.Fprintf(stdout, "%-12s %-17s", application, kind)
			for _, share := range d.best(family{application, kind, 1}, chance, algorithms) {
				fmt.Fprintf(stdout, " %14.1f", 100*share)
			}
			fmt.Fprintln(stdout)
		}
	}
	return 0
}

// best returns the share of a family's cases in which each algorithm has the best score; several may have it.
func (d desk) best(f family, chance func(*problem, int), algorithms []algorithm) []float64 {
	shares, cases := make([]float64, len(algorithms)), 0
	d.sweep(f, chance, algorithms, func(_ problem, results []result) {
		top := slices.MaxFunc(results, func(a, b result) int { return a.score.Compare(b.score) })
		cases++
		for i, r := range results {
			if r.score == top.score {
				shares[i]++
			}
		}
	})
	for i := range shares {
		shares[i] /= float64(cases)
	}
	return shares
}
