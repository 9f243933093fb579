// Command slots compares plans on slots with best effort, on simulated sites with other people's jobs in their queues,
// as Singh does (An end-to-end framework for provisioning based resource and application management, PhD thesis,
// University of Southern California, 2008, chapters 3 to 7). Published figures are in brackets.
//
//	go run ./bench/slots                  # CyberShake on 430 processors, and the rest in small: three minutes
//	go run ./bench/slots -long            # more instants, loads, and several sites
//	go run ./bench/slots -data DIR        # where lublin_256.swf.gz and KTH-SP2-1996-2.1-cln.swf.gz are
//	go run ./bench/slots -only seismic    # one experiment, or some with commas between them
//	go run ./bench/slots -out docs/bench  # draws plots, too
//
// Without the traces jobs are drawn from the model that the first of them was drawn from (plan/sim/workload), which is
// said, and what the second one is for is left out. A comparison is paired: plan and best effort begin at the same
// instant, with the same queue, and the same jobs come later. The interval of a ratio of means has 95 % (Fieller's, in
// its linear form); where a figure is asserted, its worse end is. But for the speeds, the same command prints the same
// numbers anywhere. The exit code is 1 if an assertion does not hold.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/corral-pilot/corral/bench/rig"
)

// A desk is where experiments are made.
type desk struct {
	stdout io.Writer
	data   string
	out    string // directory for plots; empty: none are drawn
	long   bool
	broken []string // assertions
}

// The experiments, in the order in which they are printed.
var experiments = []struct {
	name string
	run  func(*desk) error
}{
	{"seismic", (*desk).seismic},
	{"others", (*desk).others},
	{"grid", (*desk).grid},
	{"sites", (*desk).sites},
	{"greedy", (*desk).greedy},
	{"prices", (*desk).prices},
	{"virtual", (*desk).virtual},
	{"choose", choose},
	{"algorithms", algorithms},
	{"bag", bagOfTasks},
	{"offers", (*desk).offers},
	{"promise", (*desk).promise},
	{"speed", (*desk).speed},
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(_ context.Context, args []string, stdout, stderr io.Writer) int {
	d := &desk{stdout: stdout}
	f := flag.NewFlagSet("slots", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&d.data, "data", "../shared/data/swf", "`directory` of traces")
	f.BoolVar(&d.long, "long", false, "more instants and loads, and several sites")
	f.StringVar(&d.out, "out", "", "`directory` for plots, NAME.svg each; without it none are drawn")
	only := f.String("only", "", "`EXPERIMENTS`, with commas between them")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has said why
	}
	var names []string
	for _, e := range experiments {
		names = append(names, e.name)
	}
	asked := names
	if *only != "" {
		asked = strings.Split(*only, ",")
	}
	for _, name := range asked {
		if !slices.Contains(names, name) {
			fmt.Fprintf(stderr, "slots: -only %q is none of %s\n", name, strings.Join(names, ", "))
			return rig.Misuse
		}
	}
	fmt.Fprintf(stdout, "%s, %d processors\n", runtime.Version(), runtime.GOMAXPROCS(0))
	for _, e := range experiments {
		if !slices.Contains(asked, e.name) {
			continue
		}
		if err := e.run(d); err != nil {
			return rig.Code(stderr, "slots", err)
		}
	}
	for _, what := range d.broken {
		fmt.Fprintf(stderr, "slots: %s\n", what)
	}
	if len(d.broken) > 0 {
		return rig.Failed
	}
	return 0
}

func (d *desk) printf(format string, args ...any) { fmt.Fprintf(d.stdout, format, args...) }

// breaks notes an assertion that does not hold.
func (d *desk) breaks(format string, args ...any) {
	d.broken = append(d.broken, fmt.Sprintf(format, args...))
}

// pick is one of two numbers: of a short run, or of a long one.
func (d *desk) pick(short, long int) int {
	if d.long {
		return long
	}
	return short
}
