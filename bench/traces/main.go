// Command traces measures the cost of tracing: for a task that does nothing, a program that reads and writes in pieces,
// one that makes other calls, and one that computes.
//
//	go run ./bench/traces                # half a minute
//	go run ./bench/traces -rounds 15
//
// Each round runs a program untraced, in mode processes, in mode io, and in mode io without a filter, one after the
// other. Ratios are taken within a round, because a machine's speed changes from one minute to the next. The tracer is
// that of internal/embedded/ptrace and runs in this process, as it does in a worker. The start time of the command
// corral is also measured.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/embedded/ptrace"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 1 {
		if deed, ok := deeds[args[0]]; ok {
			return rig.Code(stderr, args[0], deed(args[1:]))
		}
	}
	f := flag.NewFlagSet("traces", flag.ContinueOnError)
	f.SetOutput(stderr)
	rounds := f.Int("rounds", 9, "number of rounds of each measurement")
	corral := f.String("corral", "bin/corral", "path of the corral `program`")
	if err := f.Parse(args); err != nil || f.NArg() > 0 || *rounds < 1 {
		fmt.Fprintln(stderr, "usage: traces [-rounds N] [-corral PROGRAM]; N is at least 1")
		return rig.Misuse
	}
	return rig.Code(stderr, "traces", measure(ctx, *rounds, *corral, stdout))
}

// A subject is a measured program.
type subject struct {
	name  string
	argv  []string
	times int // runs in a row, so that the time is long enough to measure
}

// The ways to run a subject: untraced, and in the tracer's modes.
const (
	untraced   = "untraced"
	unfiltered = "io, no filter"
)

var ways = []string{untraced, string(trace.Processes), string(trace.IO), unfiltered}

// measure measures all subjects, and prints a table.
func measure(ctx context.Context, rounds int, corral string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "corral-traces-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, make([]byte, fileBytes), 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d cpus, load %s before\n\n", runtime.Version(), runtime.NumCPU(), load())
	elapsed, used := newTable("elapsed", rounds), newTable("of processors", rounds)
	for _, s := range []subject{
		{"a task that does nothing (/bin/true)", []string{"/bin/true"}, 50},
		{"a shell with 20 children", []string{"/bin/sh", "-c", strings.Repeat("/bin/true;", 20)}, 2},
		{"64 MiB in pieces of 64 KiB, to a file", []string{self, "copy", in, filepath.Join(dir, "out"), "65536"}, 1},
		{"64 MiB in pieces of 4 KiB, to a file", []string{self, "copy", in, filepath.Join(dir, "out"), "4096"}, 1},
		{"300,000 calls that move nothing", []string{self, "calls", "300000"}, 1},
		{"half a second of computing", []string{self, "compute", "500"}, 1},
	} {
		if err := compare(ctx, s, rounds, elapsed, used); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Fprintf(out, "%s\n%s\n", elapsed, used)
	return cmp.Or(commands(ctx, corral, rounds, out), busy(ctx, self, out))
}

// A table has a line for each subject.
type table struct{ strings.Builder }

const row = "| %-44s | %9s | %13s | %13s | %15s |\n"

func newTable(what string, rounds int) *table {
	t := new(table)
	fmt.Fprintf(t, row, fmt.Sprintf("milliseconds %s, median of %d", what, rounds), ways[0], ways[1], ways[2], ways[3])
	fmt.Fprintf(t, row, "---", "---", "---", "---", "---")
	return t
}

// add adds a subject's results: the milliseconds of each round, by way.
func (t *table) add(s subject, took map[string][]float64) {
	cells := []any{s.name}
	for _, way := range ways {
		cell := strconv.FormatFloat(median(took[way]), 'f', 2, 64)
		if way != untraced {
			ratios := make([]float64, len(took[way]))
			for i := range ratios {
				ratios[i] = took[way][i] / took[untraced][i]
			}
			cell += fmt.Sprintf(" %6.2f×", median(ratios))
		}
		cells = append(cells, cell)
	}
	fmt.Fprintf(t, row, cells...)
}

// compare measures one subject in all ways.
func compare(ctx context.Context, s subject, rounds int, elapsed, used *table) error {
	wall, cpu := map[string][]float64{}, map[string][]float64{}
	for range rounds {
		for _, way := range ways {
			began, sum := time.Now(), time.Duration(0)
			for range s.times {
				took, err := run(ctx, s.argv, way)
				if err := cmp.Or(ctx.Err(), err); err != nil {
					return err
				}
				sum += took
			}
			each := 1000 / float64(s.times)
			wall[way] = append(wall[way], time.Since(began).Seconds()*each)
			cpu[way] = append(cpu[way], sum.Seconds()*each)
		}
	}
	elapsed.add(s, wall)
	used.add(s, cpu)
	return nil
}

// run runs a program once, in one way, and returns the processor time that it and its tracer used.
func run(ctx context.Context, argv []string, way string) (time.Duration, error) {
	attr := syscall.ProcAttr{Env: []string{"LC_ALL=C"}, Files: []uintptr{0, 2, 2}}
	var r ptrace.Result
	if way == untraced {
		pid, err := syscall.ForkExec(argv[0], argv, &attr)
		if err == nil {
			_, err = syscall.Wait4(pid, &r.Status, 0, &r.Used)
		}
		if err != nil {
			return 0, err
		}
	} else {
		c := ptrace.Command{Path: argv[0], Argv: argv, Attr: attr, Mode: trace.Mode(way)}
		if way == unfiltered {
			c.Mode, c.Unfiltered = trace.IO, true
		}
		var err error
		if r, err = ptrace.Run(ctx, c); err != nil {
			return 0, err
		}
	}
	if r.Status != 0 {
		return 0, fmt.Errorf("status %#x", uint32(r.Status))
	}
	return time.Duration(r.Used.Utime.Nano()+r.Used.Stime.Nano()) + r.Trace.Overhead.CPU, nil
}

// commands measures the time of a command typed with a tracer in front, and without one.
func commands(ctx context.Context, corral string, rounds int, out io.Writer) error {
	for _, argv := range [][]string{{"true"}, {corral, "profile", "trace", "-q", "--no-io", "--", "true"}} {
		var took []float64
		for range rounds {
			began := time.Now()
			if err := exec.CommandContext(ctx, argv[0], argv[1:]...).Run(); err != nil {
				return fmt.Errorf("%s (make build makes it): %w", argv[0], err)
			}
			took = append(took, time.Since(began).Seconds()*1000)
		}
		fmt.Fprintf(out, "%s: %.1f ms\n", strings.Join(argv, " "), median(took))
	}
	return nil
}

// busy prints the reported CPU use of two processes that compute at the same time: on an idle machine with two CPUs or
// more the correct value is 200 %.
func busy(ctx context.Context, self string, out io.Writer) error {
	script := strings.Repeat(self+" compute 1000 & ", 2) + "wait"
	r, err := ptrace.Run(ctx, ptrace.Command{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Attr: syscall.ProcAttr{Files: []uintptr{0, 2, 2}},
	})
	if err != nil {
		return err
	}
	used := 100 * r.Trace.Utilization()
	verdict := "as it should be, 190 to 210"
	if used < 190 || used > 210 {
		verdict = "outside 190 to 210: was the machine idle?"
	}
	fmt.Fprintf(out, "two processes that compute at once: %.0f %% of a cpu (%s)\nload %s after\n", used, verdict,
		load())
	return nil
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// load returns the machine's load average of the last minute.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
