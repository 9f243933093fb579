// Command evidence prints what the planner's claims rest on, and draws it: how near plans are to the lower bound,
// whether their confidences are true, how far estimates are off, what is known of waits, and how plans do beside other
// policies.
//
//	go run ./bench/evidence -out docs/bench            # all five, NAME.svg and NAME.csv there
//	go run ./bench/evidence -out /tmp/x waits          # one
//
// None of the figures is a time of this machine: the same command prints the same numbers anywhere. What they are
// measured on is in the repository but for the published workflows, of which only five are: -instances names a
// directory of others, with an index as that of the five.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/cli/plot"
)

// A desk is where evidence is made.
type desk struct {
	stdout    io.Writer
	out       string // a directory for plots and tables; empty: none are written
	instances string // a directory of published workflows
	trace     string // waits of a batch system
	cases     int    // of what is drawn at random
}

// A claim is one of the five.
type claim struct {
	name string
	show func(d desk, ctx context.Context) error
}

var claims = []claim{
	{"bounds", desk.bounds}, {"confidence", desk.confidence}, {"estimates", desk.estimates}, {"waits", desk.waits},
	{"comparison", desk.comparison},
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d := desk{stdout: stdout}
	f := flag.NewFlagSet("evidence", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&d.out, "out", "",
		"`directory` for plots, NAME.svg each, and tables, NAME.csv; without it none are written")
	f.StringVar(&d.instances, "instances", "workflow/formats/wfformat/testdata/wfcommons/instances",
		"`directory` of published workflows")
	f.StringVar(&d.trace, "trace", "bench/evidence/testdata/kth-sp2.csv.gz", "`file` with the waits of a batch system")
	f.IntVar(&d.cases, "cases", 40, "plans whose confidences are checked, and pairs that are compared; 30 at least")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has said why
	}
	if d.cases < 30 {
		fmt.Fprintln(stderr, "evidence: -cases is 30 at least: an interval of fewer says little")
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

// asked returns the claims of some names, all if none is named.
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
		return nil, fmt.Errorf("there is no %q: name some of bounds, confidence, estimates, waits, comparison", name)
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
