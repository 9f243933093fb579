package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/ensemble"
	"github.com/corral-pilot/corral/ensemble/recipe"
	"github.com/corral-pilot/corral/plan"
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
	if err := f.Parse(args); err != nil {
		return rig.Misuse
	}
	for _, app := range recipe.Applications {
		for _, kind := range ensemble.Kinds {
			begin := time.Now()
			best, n := make([]int, 3), 0
			d.sweep(family{app, kind, 1}, nil, asPublished, func(_ problem, r []result) {
				top := r[0].score
				for _, x := range r[1:] {
					if x.score.Compare(top) > 0 {
						top = x.score
					}
				}
				n++
				for i, x := range r {
					if x.score.Compare(top) == 0 {
						best[i]++
					}
				}
			})
			fmt.Fprintf(stdout, "%-12s %-17s", app, kind)
			for _, b := range best {
				fmt.Fprintf(stdout, " %5.1f", 100*float64(b)/float64(n))
			}
			fmt.Fprintf(stdout, "  %s\n", time.Since(begin).Round(time.Millisecond))
		}
	}
	return 0
}
