// Command growth measures what a workflow costs before any of its tasks runs, and how the cost grows with the number of
// tasks.
//
//	go run ./bench/growth                 # 1,000, 10,000, 100,000 and 1,000,000 tasks
//	go run ./bench/growth -tasks 10000    # the first two
//
// A generator writes a layered workflow to a file. A separate process, so that the peak memory is only its own, reads
// the file, checks it like a run, ranks the tasks and drains them: ready tasks are released, assigned and recorded as
// done, until all are, with the code that drives runs but without executing anything (drain.go).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
)

// drainCommand is the argument with which this program starts itself to drain one workflow.
const drainCommand = "drain"

// bytesPerTask is the default memory limit of the draining process for each task (GOMEMLIMIT overrides it): near the
// limit, the process collects garbage more often. fewBytes is the minimum limit.
const (
	bytesPerTask = 960
	fewBytes     = 32 << 20
)

// A drained contains the measurements of one workflow. Times are in nanoseconds, as in JSON.
type drained struct {
	Tasks   int           `json:"tasks"`
	Bytes   int64         `json:"bytes"`   // size of the file
	Load    time.Duration `json:"load_ns"` // reading and checking
	Rank    time.Duration `json:"rank_ns"`
	Drain   time.Duration `json:"drain_ns"`
	CPU     time.Duration `json:"cpu_ns"`   // processor time for all steps
	PeakKiB int64         `json:"peak_kib"` // peak resident memory of the process
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == drainCommand {
		return rig.Code(stderr, "growth", drain(ctx, args[1], stdout))
	}
	f := flag.NewFlagSet("growth", flag.ContinueOnError)
	f.SetOutput(stderr)
	most := f.Int("tasks", 1_000_000, "tasks of the largest workflow")
	dir := f.String("dir", os.TempDir(), "`directory` for the workflows, 350 bytes per task")
	if err := f.Parse(args); err != nil || f.NArg() > 0 || *most < 1 {
		fmt.Fprintln(stderr, "usage: growth [-tasks N] [-dir DIR]; N is at least 1")
		return rig.Misuse
	}
	return rig.Code(stderr, "growth", measure(ctx, *dir, *most, stdout))
}

// measure drains workflows of 1,000 tasks, of ten times as many, and so on up to the largest, and prints a table.
func measure(ctx context.Context, below string, most int, out io.Writer) (err error) {
	dir, err := os.MkdirTemp(below, "corral-growth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(out, "%s, %d cpus; workflows of layers, read, ranked and drained without executing, with a limit of "+
		"%d bytes a task:\n\n", runtime.Version(), runtime.NumCPU(), bytesPerTask)
	const row = "| %7s | %10s | %6s | %6s | %6s | %6s | %6s | %9s | %8s | %10s |\n"
	fmt.Fprintf(out, row, "tasks", "file B/task", "load s", "rank s", "drain s", "all s", "cpu s", "µs a task",
		"peak MiB", "peak B/task")
	fmt.Fprintf(out, row, "---", "---", "---", "---", "---", "---", "---", "---", "---", "---")
	for n := min(1000, most); ; n = min(10*n, most) {
		d, err := drainApart(ctx, dir, n)
		if err != nil {
			return err
		}
		all := d.Load + d.Rank + d.Drain
		seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }
		fmt.Fprintf(out, row, strconv.Itoa(n), strconv.FormatInt(d.Bytes/int64(n), 10),
			seconds(d.Load), seconds(d.Rank), seconds(d.Drain), seconds(all), seconds(d.CPU),
			strconv.FormatInt(all.Microseconds()/int64(n), 10), strconv.FormatInt(d.PeakKiB>>10, 10),
			strconv.FormatInt(d.PeakKiB<<10/int64(n), 10))
		if n == most {
			return nil
		}
	}
}

// drainApart generates a workflow of n tasks and drains it in a separate process.
func drainApart(ctx context.Context, dir string, n int) (d drained, err error) {
	file := filepath.Join(dir, strconv.Itoa(n)+".json")
	defer os.Remove(file)
	if err := writeLayers(file, n); err != nil {
		return d, fmt.Errorf("generating a workflow of %d tasks: %w", n, err)
	}
	self, err := os.Executable()
	if err != nil {
		return d, err
	}
	cmd := exec.CommandContext(ctx, self, drainCommand, file)
	limit := "GOMEMLIMIT=" + strconv.Itoa(max(fewBytes, n*bytesPerTask))
	cmd.Env, cmd.Stderr = append([]string{limit}, os.Environ()...), os.Stderr // the last value counts
	out, err := cmd.Output()
	if err != nil {
		return d, fmt.Errorf("draining a workflow of %d tasks: %w", n, err)
	}
	err = json.Unmarshal(out, &d)
	if err == nil && d.Tasks != n {
		err = errors.New("the drained tasks differ from the generated ones")
	}
	return d, err
}
