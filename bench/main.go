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
// around an HTCondor pool's jobs, `bench glideins` many glideins in one pool, `bench sites` many attempts
// at one site, and `bench relay` connections through a relay and ssh.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/corral-pilot/corral/internal/disk"
)

// Defaults that keep a whole run below four minutes; limitSpan lowers tasks on a slow machine.
const (
	defaultTasks  = 20_000
	defaultPairs  = 3
	defaultHops   = 500
	defaultQueued = 100_000
	defaultRounds = 10
	defaultCount  = 200
	sitesCount    = 1000
)

// Width is how many tasks run at once: in the bare loop, and as pilots of one cpu.
const width = 2

// A plan says what to measure and where.
type plan struct {
	tasks  int    // at most so many in each measurement of throughput
	pairs  int    // measurements of throughput
	hops   int    // tasks in the dependent chain
	queued int    // tasks in corrald's memory
	rounds int    // of overheads
	count  int    // of glideins in one pool, or at one site
	dir    string // parent of the temporary directory: its file system is what is measured
	bin    string // where corrald and pilot are
	out    string // a file for the report; empty: standard output alone
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == loopCommand {
		return report(stderr, loop(args[1], os.Stdin, stdout))
	}
	p, what, err := parse(args, stderr)
	if err != nil {
		return 2 // flag has said why
	}
	return report(stderr, p.inside(func(dir string) error {
		switch what {
		case "limit":
			return limitAlone(ctx, dir, p.tasks, stdout)
		case "overheads":
			return p.measureOverheads(ctx, dir, stdout, stderr)
		case "glideins":
			return p.measureGlideins(ctx, dir, stdout, stderr)
		case "sites":
			return p.measureSites(ctx, dir, stdout)
		case "relay":
			return p.measureRelay(ctx, dir, stdout, stderr)
		}
		return p.measure(ctx, dir, stdout, stderr)
	}))
}

func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bench: "+err.Error())
	return 1
}

// verbs are what may be measured instead of tasks.
var verbs = []string{"limit", "overheads", "glideins", "sites", "relay"}

// parse reads the command line; what is one of verbs, or empty.
func parse(args []string, stderr io.Writer) (p plan, what string, err error) {
	if len(args) > 0 && slices.Contains(verbs, args[0]) {
		what, args = args[0], args[1:]
	}
	count := defaultCount
	if what == "sites" {
		count = sitesCount
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&p.tasks, "tasks", defaultTasks, "at most so many tasks in each measurement of throughput")
	f.IntVar(&p.pairs, "pairs", defaultPairs, "measurements of throughput")
	f.IntVar(&p.hops, "hops", defaultHops, "tasks in the dependent chain")
	f.IntVar(&p.queued, "queued", defaultQueued, "tasks to queue for the measurement of memory")
	f.IntVar(&p.rounds, "rounds", defaultRounds, "rounds of overheads")
	f.IntVar(&p.count, "count", count, "glideins in one pool, or attempts at one site")
	f.StringVar(&p.dir, "dir", os.TempDir(), "`directory` to work below; its file system is measured")
	f.StringVar(&p.bin, "bin", "bin", "`directory` with corrald and pilot")
	f.StringVar(&p.out, "out", "", "write the report to `file`, too")
	if err := f.Parse(args); err != nil {
		return p, what, err
	}
	if f.NArg() > 0 || min(p.tasks, p.pairs, p.hops, p.queued, p.rounds, p.count) < 1 {
		fmt.Fprintln(stderr, "usage: bench [limit|overheads|glideins|sites|relay] [flags]; all numbers are at least 1")
		f.PrintDefaults()
		return p, what, flag.ErrHelp
	}
	return p, what, nil
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
	_ = disk.Scatter(dir) // as the parent of runs is: what was deleted elsewhere must not slow us down
	return do(dir)
}
