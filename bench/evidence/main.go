// Command evidence prints and draws the evidence for the planner's claims: how near plans are to the lower bound,
// whether their confidences are correct, how wrong estimates are, how well waits are predicted, how plans compare with
// other policies, how estimates are corrected during a run, and how the memory of tasks is learned from failures.
//
//	go run ./bench/evidence -out docs/bench            # all, NAME.svg and NAME.csv there
//	go run ./bench/evidence -out /tmp/x waits          # one
//
// The figures do not depend on the machine: the same command prints the same numbers everywhere. The input data is in
// the repository, except most of the published workflows, of which only five are included: -instances names a directory
// with others, with an index in the same format.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/cli/plot"
)

// A desk holds the settings of the experiments.
type desk struct {
	stdout    io.Writer
	out       string // a directory for plots and tables; empty: they are not written
	instances string // a directory of published workflows
	trace     string // waits of a batch system
	cases     int    // number of random cases
}

// A claim is one of the parts.
type claim struct {
	name string
	show func(d desk, ctx context.Context) error
}

var claims = []claim{
	{"bounds", desk.bounds}, {"confidence", desk.confidence}, {"estimates", desk.estimates}, {"waits", desk.waits},
	{"comparison", desk.comparison}, {"corrections", desk.corrections},
	{"memory", desk.memory},
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d := desk{stdout: stdout}
	f := flag.NewFlagSet("evidence", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&d.out, "out", "",
		"`directory` for plots, NAME.svg, and tables, NAME.csv; by default they are not written")
	f.StringVar(&d.instances, "instances", "workflow/formats/wfformat/testdata/wfcommons/instances",
		"`directory` of published workflows")
	f.StringVar(&d.trace, "trace", "bench/evidence/testdata/kth-sp2.csv.gz", "`file` with the waits of a batch system")
	f.IntVar(&d.cases, "cases", 40, "plans whose confidences are checked, and pairs that are compared; at least 30")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has printed the reason
	}
	if d.cases < 30 {
		fmt.Fprintln(stderr, "evidence: -cases must be at least 30: an interval of fewer is meaningless")
		return rig.Misuse
	}
	all, err := asked(f.Args())
	if err != nil {
		fmt.Fprintln(stderr, "evidence: "+err.Error())
		return rig.Misuse
	}
	for _, c := range all {
		if err := c.show(d, ctx); err != nil {
			return rig.Code(stderr, "evidence: "+c.name, err)
		}
	}
	return 0
}

// asked returns the claims with the given names, or all without names.
func asked(names []string) (all []claim, err error) {
	if len(names) == 0 {
		return claims, nil
	}
next:
	for _, name := range names {
		for _, c := range claims {
			if c.name == name {
				all = append(all, c)
				continue next
			}
		}
		var known []string
		for _, c := range claims {
			known = append(known, c.name)
		}
		return nil, fmt.Errorf("there is no %q: want some of %s", name, strings.Join(known, ", "))
	}
	return all, nil
}

func (d desk) say(format string, args ...any) { fmt.Fprintf(d.stdout, format+"\n", args...) }

// draw writes a plot.
func (d desk) draw(name string, charts ...plot.Figure) error {
	if d.out == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(d.out, name+".svg"))
	if err != nil {
		return err
	}
	if err := plot.Write(f, plot.SVG, charts...); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
