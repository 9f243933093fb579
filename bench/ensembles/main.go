// Command ensembles compares the algorithms for ensembles of workflows, as in the thesis (Juve 2012, section 6.4): how
// often each has the best score, for each application and kind of ensemble (figure 6.6), with longer tasks (6.7), and
// their cost and makespan with wrong estimates (6.8, 6.9) and late machines (6.10, 6.11). Published figures are in
// brackets. Finally it measures the duration of planning (6.12).
//
//	go run ./bench/ensembles                    # small: 20 workflows, 25 constraints, 2 seeds
//	go run ./bench/ensembles -long              # as published: 50 workflows, 100 constraints, 10 seeds
//	go run ./bench/ensembles -figures 6.8 -rules corrected
//	go run ./bench/ensembles -long -figures 6.6 -rules published -applications sipht,ligo   # a part of a figure
//
// Except for the last, the figures do not depend on the machine: the same command prints the same numbers everywhere.
// Workflows are drawn at random or, with -dax, read from a directory of generated ones. The exit code is 1 if a claim
// of the thesis that used to hold does not (claims.go).
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/plan"
)

// A desk holds the settings of the experiments.
type desk struct {
	stdout    io.Writer
	source    *source
	long      bool
	workflows int // of an ensemble
	points    int // number of budgets, and of deadlines
	seeds     int
	draws     int // outcomes that a rehearsal draws if runtimes err

	applications []string // whose panels are simulated
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(_ context.Context, args []string, stdout, stderr io.Writer) int {
	d := desk{stdout: stdout, source: &source{known: map[string]plan.Work{}}, workflows: 20, points: 5, seeds: 2}
	f := flag.NewFlagSet("ensembles", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&d.source.dir, "dax", "", "`directory` of generated workflows; by default they are drawn at random")
	f.IntVar(&d.source.instances, "instances", 20, "workflows of each size")
	f.IntVar(&d.draws, "draws", 5, "outcomes that a rehearsal draws if runtimes err")
	f.BoolVar(&d.long, "long", false, "as many ensembles of the same size as published")
	figures := f.String("figures", "6.6,6.7,6.8,6.10,late,6.12", "`FIGURES`; late: late machines and wrong runtimes")
	plots := f.String("plot", "", "draw figures 6.7, 6.8 and 6.10 into `DIR`")
	some := f.String("applications", strings.Join(applications, ","), "simulate only panels of these `APPLICATIONS`")
	rules := f.String("rules", "published,corrected", "`RULES`: published, corrected")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has printed the reason
	}
	if d.applications = strings.Split(*some, ","); !d.takes(stderr) {
		return rig.Misuse
	}
	if d.long {
		d.workflows, d.points, d.seeds = 50, 10, 10
	}
	was, err := readFigures()
	if err != nil {
		return rig.Code(stderr, "ensembles", err)
	}
	all := map[string][]played{} // :: rules → panels
	for _, how := range strings.Split(*rules, ",") {
		algorithms, known := map[string][]algorithm{"published": asPublished, "corrected": corrected}[how]
		if !known {
			fmt.Fprintf(stderr, "ensembles: -rules %q is neither published nor corrected\n", how)
			return rig.Misuse
		}
		fmt.Fprintf(stdout, "\n%s:\n\n", how)
		head(stdout)
		for _, figure := range strings.Split(*figures, ",") {
			if how == "published" && figure == "late" {
				continue // it was not published
			}
			for _, n := range d.panels(figure) {
				standings := d.standings(n, algorithms)
				n.show(stdout, standings, was)
				all[how] = append(all[how], played{n, standings})
			}
		}
	}
	wrong := append(d.broken(all["published"], was), missed(all["corrected"])...)
	if slices.Contains(strings.Split(*figures, ","), "6.12") && !d.pace() {
		wrong = append(wrong, slow)
	}
	for _, what := range wrong {
		fmt.Fprintf(stderr, "ensembles: %s\n", what)
	}
	if *plots != "" {
		err = drawAll(*plots, all, was)
	}
	if err == nil && len(wrong) > 0 {
		return 1
	}
	return rig.Code(stderr, "ensembles", err)
}

// takes reports whether all applications whose panels are simulated are known, and otherwise prints which one is not.
func (d *desk) takes(stderr io.Writer) bool {
	for _, name := range d.applications {
		if !slices.Contains(applications, name) {
			fmt.Fprintf(stderr, "ensembles: -applications %q is none of %q\n", name, applications)
			return false
		}
	}
	return true
}
