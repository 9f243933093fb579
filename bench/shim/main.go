// Command shim compares the Slurm commands of Corral's shim with those of a real Slurm on the same two CPUs. It
// measures the cost of a submission, the time of a job that does nothing, and the time of many jobs that sleep for a
// second, submitted one by one and by Makeflow. It also measures Snakemake with rules that sleep.
//
//	go run ./bench/shim                     # more than an hour, mostly spent asleep
//	go run ./bench/shim -jobs 40 -rules 10  # a small run
//	go run ./bench/shim -jobs 0             # only Snakemake
//
// It measures three sides: an idle Slurm as scripts/slurm configures it, which starts a job immediately; a Slurm with
// the settings of large sites (SchedulerParameters=defer,sched_min_interval=30000000: it starts jobs every thirty
// seconds at most), which gets fewer jobs because it starts only two in thirty seconds; and a shim on a pilot of two
// CPUs. The benchmark drives each side only by the users' commands, which it puts first on PATH.
//
// For sleeping jobs it reports how much of the time the two CPUs were occupied: work ÷ CPUs ÷ elapsed time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
)

// A bench holds the options of a run.
type bench struct {
	jobs                 int    // jobs that sleep for a second, on a side that starts them at once; 0: only Snakemake
	deferred             int    // jobs that sleep for a second, on the deferring side
	noops                int    // jobs that do nothing, one after the other
	pending              int    // jobs that squeue lists, in thousands
	sides                string // names of the sides to measure, separated by commas
	rules, deferredRules int    // Snakemake rules that sleep for a second, likewise; 0: not measured

	dir string // parent of the temporary directory
	bin string // directory of the corral binary

	stdout, stderr io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, err := parse(args, stdout, stderr)
	if err != nil {
		return rig.Misuse // flag has printed the reason
	}
	return rig.Code(stderr, "shim", b.measure(ctx))
}

// parse reads the command line. It reports an error on stderr before it returns.
func parse(args []string, stdout, stderr io.Writer) (bench, error) {
	b := bench{stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("shim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&b.jobs, "jobs", 1000, "jobs that sleep for a second; 0: measure only Snakemake")
	f.IntVar(&b.deferred, "deferred", 20, "jobs that sleep, on the Slurm that starts jobs every thirty seconds")
	f.IntVar(&b.noops, "noops", 30, "jobs that do nothing, one after the other")
	f.IntVar(&b.pending, "pending", 10, "`thousands` of jobs that squeue lists")
	f.IntVar(&b.rules, "rules", 100, "Snakemake rules that sleep for a second; 0: not measured")
	f.IntVar(&b.deferredRules, "deferred-rules", 0, "these rules, on the Slurm that starts jobs every thirty seconds")
	f.StringVar(&b.sides, "sides", "shim,slurm,deferred", "`NAMES` of the sides to measure")
	f.StringVar(&b.dir, "dir", "/tmp", "parent `directory` of the working directory; sockets need a short path")
	f.StringVar(&b.bin, "bin", "bin", "`directory` of the corral binary")
	if err := f.Parse(args); err != nil {
		return b, err
	}
	if f.NArg() > 0 || min(b.noops, b.pending, b.deferred) < 1 || min(b.jobs, b.rules, b.deferredRules) < 0 {
		fmt.Fprintln(stderr, "usage: shim [flags]; numbers are at least 1, or 0 where the flag's text allows it")
		f.PrintDefaults()
		return b, flag.ErrHelp
	}
	return b, nil
}

// measure measures all sides, one after the other, so that each has the machine to itself.
func (b bench) measure(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "scripts/peers").Output()
	if err != nil {
		return fmt.Errorf("scripts/peers, which must be run in the project's folder: %w", err)
	}
	peers := filepath.Join(strings.TrimSpace(string(out)), "bin")
	if b.jobs > 0 {
		if err := b.commands(ctx, peers); err != nil {
			return err
		}
	}
	rows, err := b.snakemake(ctx, peers)
	if len(rows) > 0 {
		reportSnakemake(b.stdout, rows)
	}
	return err
}

// commands measures how Slurm's commands and Makeflow handle jobs, and reports it.
func (b bench) commands(ctx context.Context, peers string) error {
	var all []measured
	for _, kind := range []struct {
		name  string
		start func(context.Context, string) (*side, error)
		plan  plan
	}{
		{"shim", b.startShim, plan{b.jobs, b.noops, b.pending}},
		{"slurm", slurm{}.named("Slurm, idle").start, plan{b.jobs, b.noops, b.pending}},
		{"deferred", slurm{}.named("Slurm, deferring", deferring).start, plan{b.deferred, 2, 0}},
	} {
		if !slices.Contains(strings.Split(b.sides, ","), kind.name) {
			continue
		}
		err := b.on(ctx, peers, kind.start, func(s *side) error {
			fmt.Fprintf(b.stderr, "shim: %s: %d sleeping, %d no-op jobs\n", s.name, kind.plan.jobs, kind.plan.noops)
			m, err := s.measure(ctx, kind.plan, b.stderr)
			all = append(all, m)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(b.stdout, report(all))
	return err
}

// on starts a side, runs measure on it, and stops it.
func (b bench) on(
	ctx context.Context, peers string, start func(context.Context, string) (*side, error), measure func(*side) error,
) (err error) {
	dir, err := os.MkdirTemp(b.dir, "shim")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // jobs may run as another user
		return err
	}
	s, err := start(ctx, dir)
	defer func() { err = errors.Join(err, s.end()) }()
	if err != nil {
		return err
	}
	s.peers = peers
	return measure(s)
}

// report returns a table with a column for each side.
func report(all []measured) string {
	var b strings.Builder
	row := func(name string, cell func(measured) string) {
		b.WriteString("| " + name)
		for _, m := range all {
			b.WriteString(" | " + cell(m))
		}
		b.WriteString(" |\n")
	}
	row("", func(m measured) string { return m.name })
	row("---", func(measured) string { return "---" })
	row("sbatch, ms, median", func(m measured) string { return milliseconds(median(m.submits)) })
	row("sbatch -W of no work, ms, median", func(m measured) string { return milliseconds(median(m.noops)) })
	row("squeue of pending jobs, ms, median", func(m measured) string {
		if len(m.queues) == 0 {
			return "–"
		}
		return fmt.Sprintf("%s (of %d)", milliseconds(median(m.queues)), m.pending)
	})
	row("sleeping jobs by sbatch", func(m measured) string { return m.share(m.jobs) })
	row("sleeping jobs by Makeflow", func(m measured) string { return m.share(m.makeflow) })
	if len(all) > 1 {
		row("Makeflow's jobs a second ÷ this side's", func(m measured) string {
			first := all[0]
			return fmt.Sprintf("%.1f", rate(first.plan.jobs, first.makeflow)/rate(m.plan.jobs, m.makeflow))
		})
	}
	return b.String()
}

// share reports the time that the jobs took, and the share of it in which the CPUs had work.
func (m measured) share(took time.Duration) string {
	ideal := time.Duration(m.plan.jobs) * time.Second / cpus
	return fmt.Sprintf("%d in %.1f s: %.0f %%", m.plan.jobs, took.Seconds(), 100*ideal.Seconds()/took.Seconds())
}

func rate(jobs int, took time.Duration) float64 { return float64(jobs) / took.Seconds() }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}
