// Command shim measures Slurm's commands as Corral's shim has them beside those of a real Slurm on the same two cpus:
// what a job costs who submits it, how long one that does nothing takes, and many that sleep for a second, submitted
// one by one and by Makeflow; and Snakemake with rules that do.
//
//	go run ./bench/shim                     # more than an hour, most of it asleep
//	go run ./bench/shim -jobs 40 -rules 10  # in small
//	go run ./bench/shim -jobs 0             # Snakemake alone
//
// There are three sides: Slurm as idle as scripts/slurm has it, which starts a job as soon as it is submitted; Slurm as
// large sites have it (SchedulerParameters=defer,sched_min_interval=30000000: it starts jobs every thirty seconds at
// most), to which fewer jobs are given, since two start in thirty seconds; and a shim on a pilot of two cpus. Each is
// driven by nothing but the commands that users have, found first on PATH.
//
// What is reported of sleeping jobs is the share of the time in which the two cpus had one: work ÷ cpus ÷ time taken.
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

// A bench says what to measure and where.
type bench struct {
	jobs                 int    // that sleep for a second, on a side that starts them at once; 0: only Snakemake
	deferred             int    // of these, on the side that does not
	noops                int    // that do nothing, one after the other
	pending              int    // that squeue shows, in thousands
	sides                string // some of their names
	rules, deferredRules int    // of Snakemake that sleep for a second, likewise; 0: it is not measured

	dir string // parent of the temporary directory
	bin string // where corral is

	stdout, stderr io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, err := parse(args, stdout, stderr)
	if err != nil {
		return rig.Misuse // flag has said why
	}
	return rig.Code(stderr, "shim", b.measure(ctx))
}

// parse reads the command line. What is wrong with it is said on stderr before it returns.
func parse(args []string, stdout, stderr io.Writer) (bench, error) {
	b := bench{stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("shim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&b.jobs, "jobs", 1000, "that sleep for a second; 0: nothing but Snakemake is measured")
	f.IntVar(&b.deferred, "deferred", 20, "of these, on the Slurm that starts some every thirty seconds")
	f.IntVar(&b.noops, "noops", 30, "jobs that do nothing, one after the other")
	f.IntVar(&b.pending, "pending", 10, "`thousands` of jobs that squeue shows")
	f.IntVar(&b.rules, "rules", 100, "of Snakemake that sleep for a second; 0: it is not measured")
	f.IntVar(&b.deferredRules, "deferred-rules", 0, "of these, on the Slurm that starts some every thirty seconds")
	f.StringVar(&b.sides, "sides", "shim,slurm,deferred", "`NAMES` of those that are measured")
	f.StringVar(&b.dir, "dir", "/tmp", "`directory` to work below: sockets in it have short names")
	f.StringVar(&b.bin, "bin", "bin", "`directory` with corral")
	if err := f.Parse(args); err != nil {
		return b, err
	}
	if f.NArg() > 0 || min(b.noops, b.pending, b.deferred) < 1 || min(b.jobs, b.rules, b.deferredRules) < 0 {
		fmt.Fprintln(stderr, "usage: shim [flags]; numbers are at least 1, and 0 where it says so")
		f.PrintDefaults()
		return b, flag.ErrHelp
	}
	return b, nil
}

// measure measures all sides, one after the other: the machine is one alone's at a time.
func (b bench) measure(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "scripts/peers").Output()
	if err != nil {
		return fmt.Errorf("scripts/peers, which is run in the project's folder: %w", err)
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

// commands measures what Slurm's commands and Makeflow do with jobs, and reports it.
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
			fmt.Fprintf(b.stderr, "shim: %s: %d jobs, %d without work\n", s.name, kind.plan.jobs, kind.plan.noops)
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

// on starts a side, has it measured, and ends it.
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

// report is a table with a column for each side.
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

// share says how long so many jobs took, and how much of it the cpus had work.
func (m measured) share(took time.Duration) string {
	ideal := time.Duration(m.plan.jobs) * time.Second / cpus
	return fmt.Sprintf("%d in %.1f s: %.0f %%", m.plan.jobs, took.Seconds(), 100*ideal.Seconds()/took.Seconds())
}

func rate(jobs int, took time.Duration) float64 { return float64(jobs) / took.Seconds() }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}
