// Package baseline measures a command on this machine several times: its duration and, if the kernel counts them, its
// instructions and cycles. Package selection compares a resource's rate with this measurement: elsewhere the same
// program executes as many instructions, at another clock rate.
//
// The counts are from perf stat. Without perf, without permission, or on a machine without counters, such as most
// virtual machines, only the wall-clock time is known, and Source indicates this.
package baseline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
)

// A Source is the method of measurement.
type Source string

// The sources.
const (
	Perf      Source = "perf"      // measured by perf stat, including instructions and cycles
	WallClock Source = "wallclock" // only times were measured
)

// A Baseline is the result of measuring a command.
type Baseline struct {
	Command      []string `json:"command"`
	Runs         int      `json:"runs"`
	Source       Source   `json:"source"`
	Why          string   `json:"why,omitempty"` // why no instructions and cycles were counted
	Wall         Spread   `json:"wall_s"`
	Instructions *Spread  `json:"instructions"`        // null if not counted
	Cycles       *Spread  `json:"cycles"`              // null if not counted
	PerCycle     float64  `json:"per_cycle,omitempty"` // instructions per cycle
	ClockHz      float64  `json:"clock_hz,omitempty"`  // mean of cycles divided by the time on a processor
}

// A Spread holds the mean and the sample standard deviation of some values.
type Spread struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
}

// counts are the measurements of one run.
type counts struct {
	wall                 time.Duration
	counted              bool
	instructions, cycles float64
	busy                 time.Duration // time on processors
}

// Measure runs a command the given number of times, one after the other, with this process's folder and environment,
// empty standard input and discarded output. If a run fails, the first such failure is returned as an error of kind
// Failed; a missing program is an error of kind NotFound.
func Measure(ctx context.Context, argv []string, runs int) (b Baseline, err error) {
	if len(argv) == 0 || runs < 1 {
		return b, corral.Errorf(corral.Invalid, "nothing to run: give a command and a number of runs")
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return b, corral.Errorf(corral.NotFound, "there is no program %q", argv[0])
	}
	perf, why := usable(ctx)
	var all []counts
	for range runs {
		c, err := once(ctx, perf, argv)
		if err != nil {
			return b, err
		}
		all = append(all, c)
	}
	b = summary(all)
	b.Command = argv
	if b.Source == WallClock {
		b.Why = why
		if why == "" {
			b.Why = "perf counted nothing"
		}
	}
	return b, nil
}

// usable returns the path of perf if perf counts instructions on this machine; otherwise it returns the reason why perf
// does not.
func usable(ctx context.Context) (perf, why string) {
	perf, err := exec.LookPath("perf")
	if err != nil {
		return "", "there is no perf"
	}
	c, err := once(ctx, perf, []string{"true"})
	switch {
	case err != nil:
		return "", "perf does not run: " + err.Error()
	case !c.counted:
		return "", "perf counts no instructions here"
	}
	return perf, ""
}

// once runs a command, under perf if a path of perf is given.
func once(ctx context.Context, perf string, argv []string) (c counts, err error) {
	run := argv
	var report string
	if perf != "" {
		dir, err := os.MkdirTemp("", "corral-baseline-")
		if err != nil {
			return c, fmt.Errorf("making a folder for perf's report: %w", err)
		}
		defer os.RemoveAll(dir)
		report = filepath.Join(dir, "stat")
		run = append([]string{perf, "stat", "-x,", "-e", "instructions,cycles,task-clock", "-o", report, "--"}, argv...)
	}
	said, err := c.time(exec.CommandContext(ctx, run[0], run[1:]...))
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return c, corral.Errorf(corral.Failed, "%s: %w", argv[0], err)
		}
		lines := strings.Split(strings.TrimSpace(said), "\n")
		return c, corral.Errorf(corral.Failed, "%s: %w: %.200s", argv[0], err, lines[len(lines)-1])
	}
	if report != "" {
		text, err := os.ReadFile(report)
		if err != nil {
			return c, fmt.Errorf("reading perf's report: %w", err)
		}
		c.read(string(text))
	}
	return c, nil
}

// grace is the maximum time for which processes left behind by a command may hold its standard error open.
const grace = time.Second

// time runs a command in a process group of its own, and ends the whole group on an interruption, because killing perf
// alone would leave the command running. It returns the end of the command's standard error. It does not wait for
// processes that the command leaves behind.
func (c *counts) time(cmd *exec.Cmd) (said string, err error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer ours.Close()
	cmd.Stderr = theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	began := time.Now()
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return "", err
	}
	var end last
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&end, ours)
		close(read)
	}()
	err = cmd.Wait()
	c.wall = time.Since(began)
	if err == nil {
		ours.Close()
	} else {
		_ = ours.SetReadDeadline(time.Now().Add(grace))
	}
	<-read
	return string(end), err
}

// A last keeps only the end of the data written to it, because a command may write an unlimited amount.
type last []byte

func (l *last) Write(p []byte) (int, error) {
	const kept = 1024
	all := append(*l, p[max(0, len(p)-kept):]...)
	*l = append((*l)[:0], all[max(0, len(all)-kept):]...)
	return len(p), nil
}

// read parses the output of perf stat -x: VALUE,UNIT,EVENT,… in each line, where an event may have a suffix such as :u,
// and a value that was not counted is in angle brackets. For a hybrid processor the output contains a line for each
// kind of core.
func (c *counts) read(text string) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 3 {
			continue
		}
		n, err := strconv.ParseFloat(f[0], 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 1) {
			continue
		}
		event, _, _ := strings.Cut(f[2], ":")
		if parts := strings.Split(event, "/"); len(parts) > 1 {
			event = parts[1]
		}
		switch event {
		case "instructions":
			c.instructions += n
		case "cycles":
			c.cycles += n
		case "task-clock":
			c.busy += time.Duration(n * float64(time.Millisecond))
		}
	}
	c.counted = c.instructions > 0 && c.cycles > 0
}

// summary combines runs. It includes counts only if all runs were counted.
func summary(all []counts) Baseline {
	b := Baseline{Runs: len(all), Source: Perf, Wall: spread(all, func(c counts) float64 { return c.wall.Seconds() })}
	var instructions, cycles, busy float64
	for _, c := range all {
		if !c.counted {
			b.Source = WallClock
			return b
		}
		instructions, cycles, busy = instructions+c.instructions, cycles+c.cycles, busy+c.busy.Seconds()
	}
	executed := spread(all, func(c counts) float64 { return c.instructions })
	clocked := spread(all, func(c counts) float64 { return c.cycles })
	b.Instructions, b.Cycles, b.PerCycle = &executed, &clocked, instructions/cycles
	if busy > 0 {
		b.ClockHz = cycles / busy
	}
	return b
}

func spread(all []counts, of func(counts) float64) (s Spread) {
	n := float64(len(all))
	for _, c := range all {
		s.Mean += of(c) / n
	}
	for _, c := range all {
		s.SD += (of(c) - s.Mean) * (of(c) - s.Mean)
	}
	s.SD = math.Sqrt(s.SD / max(1, n-1))
	return s
}
