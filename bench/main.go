// Command bench measures Corral beside the best that the machine could do.
//
// Its yardstick is the bare loop (limit.go): for each task it makes the directory and the files that a
// task's attempt has in a run, starts the same process and waits for it, and does nothing else: no
// queue, no connection, no journal. The bare loop and Corral take turns within one run of the program,
// and what is reported first is the ratio of neighbours, because the machine's own speed moves between
// two runs, and often within one.
//
// It uses a private corrald below a temporary directory, through the API that everybody uses, and
// leaves nothing behind. `bench limit` measures the bare loop alone, `bench overheads` what Corral adds
// around an HTCondor pool's jobs, `bench glideins` many glideins in one pool, `bench plans` how plans of published
// workflows go when they are executed, and `bench peers` what others make of the same tasks.
//
// What needs no programs is measured by Go's own benchmarks, which are among the tests: many attempts at one site
// (BenchmarkSites) and connections through a relay and ssh (BenchmarkRelay).
//
// A measurement is either of times (a sample), of which the report takes ratios and medians, or of memory. How they
// are taken is in throughput.go (the turns of the sides that are compared), limit.go (the bare loop), stand.go and
// condor.go (Corral, with embedded workers and with an HTCondor pool); what is made of them in sample.go and report.go,
// which are pure.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// Defaults that keep a whole run below four minutes; limitSpan lowers tasks on a slow machine.
const (
	defaultTasks    = 20_000
	defaultRounds   = 3
	overheadsRounds = 10
	defaultHops     = 500
	defaultQueued   = 100_000
	defaultCount    = 200
	defaultCPUs     = 4
	defaultSpan     = 15 * time.Second
)

// Width is how many tasks run at once: in the bare loop, and as pilots of one cpu.
const width = 2

// A plan says what to measure and where.
type plan struct {
	tasks  int    // at most so many in each measurement of throughput
	rounds int    // in which the sides that are compared take turns
	hops   int    // tasks in the dependent chain
	queued int    // tasks in corrald's memory
	count  int    // of glideins in one pool
	cpus   int    // that plans may count on
	dir    string // parent of the temporary directory: its file system is what is measured
	bin    string // where corral, corrald and pilot are
	out    string // a file for the report; empty: standard output alone

	instances string        // a directory of published workflows
	span      time.Duration // that their critical paths stay below
	kind      string        // of the cluster that executes them

	stdout, stderr io.Writer // the report; what goes on meanwhile
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == loopCommand {
		return rig.Code(stderr, "bench", loop(args[1], os.Stdin, stdout))
	}
	measure, args := verbOf(args)
	p, err := parse(measure, args, stdout, stderr)
	if err != nil {
		return rig.Misuse // flag has said why
	}
	return rig.Code(stderr, "bench", p.inside(func(dir string) error { return verbs[measure](p, ctx, dir) }))
}

// verbs are what may be measured: nothing else is named, the tasks.
var verbs = map[string]func(p plan, ctx context.Context, dir string) error{
	"":          plan.measureTasks,
	"limit":     plan.measureLimit,
	"overheads": plan.measureOverheads,
	"glideins":  plan.measureGlideins,
	"plans":     plan.measurePlans,
	"peers":     plan.measurePeers,
}

// verbOf returns the verb with which args begin, empty if they begin with none, and the others.
func verbOf(args []string) (verb string, rest []string) {
	if len(args) > 0 && verbs[args[0]] != nil {
		return args[0], args[1:]
	}
	return "", args
}

// parse reads the flags of a verb.
func parse(verb string, args []string, stdout, stderr io.Writer) (plan, error) {
	rounds := defaultRounds
	if verb == "overheads" {
		rounds = overheadsRounds
	}
	p := plan{stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&p.tasks, "tasks", defaultTasks, "at most so many tasks in each measurement of throughput")
	f.IntVar(&p.rounds, "rounds", rounds, "how often each measurement is taken")
	f.IntVar(&p.hops, "hops", defaultHops, "tasks in the dependent chain")
	f.IntVar(&p.queued, "queued", defaultQueued, "tasks to queue for the measurement of memory")
	f.IntVar(&p.count, "count", defaultCount, "glideins in one pool")
	f.IntVar(&p.cpus, "cpus", defaultCPUs, "that plans may count on: their tasks sleep")
	f.StringVar(&p.instances, "instances", "workflow/formats/wfformat/testdata/wfcommons/instances",
		"`directory` of published workflows whose plans are executed")
	f.DurationVar(&p.span, "span", defaultSpan, "which the critical paths of these workflows stay below")
	f.StringVar(&p.kind, "kind", string(corral.Embedded), "of the `cluster` that executes them: embedded, or condor")
	f.StringVar(&p.dir, "dir", os.TempDir(), "`directory` to work below; its file system is measured")
	f.StringVar(&p.bin, "bin", "bin", "`directory` with corrald and pilot")
	f.StringVar(&p.out, "out", "", "also write the report to `file`")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	if f.NArg() > 0 || min(p.tasks, p.rounds, p.hops, p.queued, p.count, p.cpus) < 1 || p.span <= 0 ||
		instances[corral.ClusterKind(p.kind)] == nil {
		fmt.Fprintln(stderr, "usage: bench [limit|overheads|glideins|plans|peers] [flags]; "+
			"all numbers are at least 1, a kind is embedded or condor")
		f.PrintDefaults()
		return p, flag.ErrHelp
	}
	return p, nil
}

// say tells what goes on.
func (p plan) say(format string, args ...any) { fmt.Fprintf(p.stderr, "bench: "+format+"\n", args...) }

// publish prints a report of what was measured, and writes it to the file of the plan if there is one.
func (p plan) publish(m machine, text string) error {
	text = m.String() + text
	if _, err := io.WriteString(p.stdout, text); err != nil || p.out == "" {
		return err
	}
	return os.WriteFile(p.out, []byte(text), 0o666)
}

// inside calls do with a temporary directory, which is gone afterwards. Nothing in it is deleted before
// the end, because ext4 slows down where much was deleted just now.
func (p plan) inside(do func(dir string) error) error {
	dir, err := os.MkdirTemp(p.dir, "corral-bench-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	_ = atomicfile.Scatter(dir) // as the parent of runs is: what was deleted elsewhere must not slow us down
	return do(dir)
}
