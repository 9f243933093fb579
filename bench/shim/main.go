// Command shim measures Slurm's commands as Corral's shim has them beside those of a real Slurm on the same two cpus:
// what a job costs who submits it, how long one that does nothing takes, and many that sleep for a second, submitted
// one by one and by Makeflow.
//
//	go run ./bench/shim            # about an hour, most of it asleep
//	go run ./bench/shim -jobs 40   # in small
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
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A bench says what to measure and where.
type bench struct {
	jobs     int    // that sleep for a second, on a side that starts them at once
	deferred int    // of these, on the side that does not
	noops    int    // that do nothing, one after the other
	pending  int    // that squeue shows, in thousands
	sides    string // some of their names
	dir      string // parent of the temporary directory
	bin      string // where corral is

	stdout, stderr io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, err := parse(args, stdout, stderr)
	if err != nil {
		return 2 // flag has said why
	}
	if err := b.measure(ctx); err != nil {
		fmt.Fprintln(stderr, "shim: "+err.Error())
		return 1
	}
	return 0
}

func parse(args []string, stdout, stderr io.Writer) (bench, error) {
	b := bench{stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("shim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&b.jobs, "jobs", 1000, "that sleep for a second")
	f.IntVar(&b.deferred, "deferred", 20, "of these, on the Slurm that starts some every thirty seconds")
	f.IntVar(&b.noops, "noops", 30, "jobs that do nothing, one after the other")
	f.IntVar(&b.pending, "pending", 10, "`thousands` of jobs that squeue shows")
	f.StringVar(&b.sides, "sides", "shim,slurm,deferred", "`NAMES` of those that are measured")
	f.StringVar(&b.dir, "dir", "/tmp", "`directory` to work below: sockets in it have short names")
	f.StringVar(&b.bin, "bin", "bin", "`directory` with corral")
	if err := f.Parse(args); err != nil {
		return b, err
	}
	if f.NArg() > 0 || min(b.jobs, b.noops, b.pending, b.deferred) < 1 {
		fmt.Fprintln(stderr, "usage: shim [flags]; all numbers are at least 1")
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
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return err
	}
	var all []measured
	for _, kind := range []struct {
		name  string
		start func(context.Context, string) (*side, error)
		plan  plan
	}{
		{"shim", b.startShim, plan{b.jobs, b.noops, b.pending}},
		{"slurm", b.startSlurm, plan{b.jobs, b.noops, b.pending}},
		{"deferred", b.startDeferred, plan{b.deferred, 2, 0}},
	} {
		if !slices.Contains(strings.Split(b.sides, ","), kind.name) {
			continue
		}
		m, err := b.one(ctx, peers, kind.start, kind.plan)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	_, err = io.WriteString(b.stdout, report(all))
	return err
}

// one measures one side, and ends it.
func (b bench) one(
	ctx context.Context, peers string, start func(context.Context, string) (*side, error), p plan,
) (m measured, err error) {
	dir, err := os.MkdirTemp(b.dir, "shim")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // who runs jobs may be somebody else
		return m, err
	}
	s, err := start(ctx, dir)
	defer func() { err = errors.Join(err, s.end()) }()
	if err != nil {
		return m, err
	}
	s.peers = peers
	fmt.Fprintf(b.stderr, "shim: %s: %d jobs, %d without work\n", s.name, p.jobs, p.noops)
	return s.measure(ctx, p, b.stderr)
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
