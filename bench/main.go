// Command bench compares Corral with the best that the machine could do.
//
// Its yardstick is the bare loop (limit.go): for each task it creates the directory and the files of a task's attempt
// in a run, starts the same process and waits for it, and does nothing else: it has no queue, no connection, no
// journal. The bare loop and Corral take turns within one run of the program, and the report begins with the ratio of
// neighbouring measurements, because the machine's own speed varies between two runs, and often within one.
//
// The program uses a private corrald below a temporary directory, through the public API, and leaves nothing behind.
// `bench limit` measures only the bare loop, `bench overheads` the overhead that Corral adds to an HTCondor pool's
// jobs, `bench glideins` many glideins in one pool, `bench plans` the execution of plans of published workflows, and
// `bench peers` other programs with the same tasks.
//
// Measurements that need no programs are Go benchmarks among the tests: many attempts at one site (BenchmarkSites) and
// connections through a relay and ssh (BenchmarkRelay).
//
// A measurement consists either of times (a sample), for which the report contains ratios and medians, or of memory.
// Measurements are made in throughput.go (the turns of the compared sides), limit.go (the bare loop), stand.go and
// condor.go (Corral, with embedded workers and with an HTCondor pool); they are evaluated in sample.go and report.go,
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

// Defaults that keep a whole run below four minutes; limitSpan lowers the number of tasks on a slow machine.
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

// width is how many tasks run at once: in the bare loop, and as pilots with one cpu.
const width = 2

// A plan specifies what to measure and where.
type plan struct {
	tasks  int    // maximum in each measurement of throughput
	rounds int    // in which the compared sides take turns
	hops   int    // tasks in the dependent chain
	queued int    // tasks in corrald's memory
	count  int    // glideins in one pool
	cpus   int    // that plans may use
	dir    string // parent of the temporary directory: its file system is measured
	bin    string // folder with corral, corrald and pilot
	out    string // a file for the report; empty: only standard output

	instances string        // a directory of published workflows
	span      time.Duration // limit for their critical paths
	kind      string        // of the cluster that executes them

	stdout, stderr io.Writer // the report; progress messages
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
		return rig.Misuse // flag has printed the reason
	}
	return rig.Code(stderr, "bench", p.inside(func(dir string) error { return verbs[measure](p, ctx, dir) }))
}

// verbs are the possible measurements: without a name, the tasks are measured.
var verbs = map[string]func(p plan, ctx context.Context, dir string) error{
	"":          plan.measureTasks,
	"limit":     plan.measureLimit,
	"overheads": plan.measureOverheads,
	"glideins":  plan.measureGlideins,
	"plans":     plan.measurePlans,
	"peers":     plan.measurePeers,
}

// verbOf returns the verb at the beginning of args, empty if there is none, and the other arguments.
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
	f.IntVar(&p.tasks, "tasks", defaultTasks, "maximum number of tasks in each measurement of throughput")
	f.IntVar(&p.rounds, "rounds", rounds, "number of times each measurement is taken")
	f.IntVar(&p.hops, "hops", defaultHops, "tasks in the dependent chain")
	f.IntVar(&p.queued, "queued", defaultQueued, "tasks to queue for the measurement of memory")
	f.IntVar(&p.count, "count", defaultCount, "glideins in one pool")
	f.IntVar(&p.cpus, "cpus", defaultCPUs, "cpus that plans may use: their tasks sleep")
	f.StringVar(&p.instances, "instances", "workflow/formats/wfformat/testdata/wfcommons/instances",
		"`directory` of published workflows whose plans are executed")
	f.DurationVar(&p.span, "span", defaultSpan, "limit for the critical paths of these workflows")
	f.StringVar(&p.kind, "kind", string(corral.Embedded), "`cluster` kind that executes them: embedded or condor")
	f.StringVar(&p.dir, "dir", os.TempDir(), "parent `directory` of the working directory; its file system is measured")
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

// say prints progress.
func (p plan) say(format string, args ...any) { fmt.Fprintf(p.stderr, "bench: "+format+"\n", args...) }

// publish prints a report of the measurements, and writes it to the plan's file if there is one.
func (p plan) publish(m machine, text string) error {
	text = m.String() + text
	if _, err := io.WriteString(p.stdout, text); err != nil || p.out == "" {
		return err
	}
	return os.WriteFile(p.out, []byte(text), 0o666)
}

// inside calls do with a temporary directory, which is removed afterwards. Nothing in it is deleted before the end,
// because ext4 is slow where much has just been deleted.
func (p plan) inside(do func(dir string) error) error {
	dir, err := os.MkdirTemp(p.dir, "corral-bench-")
	if err != nil {
		return fmt.Errorf("creating a temporary directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	_ = atomicfile.Scatter(dir) // like the parent of runs: files deleted elsewhere must not slow us down
	return do(dir)
}
