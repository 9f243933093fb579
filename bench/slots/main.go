// Command slots compares plans on slots with best effort, on simulated sites whose queues contain other users' jobs, as
// Singh does (An end-to-end framework for provisioning based resource and application management, PhD thesis,
// University of Southern California, 2008, chapters 3 to 7). Published figures are in brackets.
//
//	go run ./bench/slots                  # CyberShake on 430 processors, and the rest on a small scale: three minutes
//	go run ./bench/slots -long            # more instants, loads, and several sites
//	go run ./bench/slots -data DIR        # the directory of lublin_256.swf.gz and KTH-SP2-1996-2.1-cln.swf.gz
//	go run ./bench/slots -only seismic    # one experiment, or several, separated by commas
//	go run ./bench/slots -out docs/bench  # also draws plots
//
// Without the traces it draws jobs from the model that the first trace was drawn from (plan/sim/workload), says so in
// the output, and omits the experiments that need the second trace. A comparison is paired: plan and best effort begin
// at the same instant, with the same queue and the same later arrivals. A ratio of means has a 95 % interval
// (Fieller's, in its linear form); assertions test its worse end. Except for the speeds, the same command prints the
// same numbers on any machine. The exit code is 1 if an assertion fails.
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

// A desk holds the settings and the results of the experiments.
type desk struct {
	stdout io.Writer
	data   string
	out    string // directory for plots; empty: none are drawn
	long   bool
	broken []string // failed assertions
}

// experiments are printed in this order.
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
	f.StringVar(&d.out, "out", "", "`directory` for plots, named NAME.svg; empty: none are drawn")
	only := f.String("only", "", "`EXPERIMENTS` to run, separated by commas")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has printed the reason
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
			fmt.Fprintf(stderr, "slots: -only %q: unknown experiment; known are %s\n", name, strings.Join(names, ", "))
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

// breaks records a failed assertion.
func (d *desk) breaks(format string, args ...any) {
	d.broken = append(d.broken, fmt.Sprintf(format, args...))
}

// pick returns short in a short run and long in a long one.
func (d *desk) pick(short, long int) int {
	if d.long {
		return long
	}
	return short
}
