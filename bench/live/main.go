// Command live executes workflows with `corral run --auto` and compares them with what their plans say, and with a
// control run beside each: a program without Corral that runs the same tasks by the same plan.
//
//	go run ./bench/live -runs 4                 # on this machine
//	go run ./bench/live -runs 4 -slurm          # on a real Slurm (scripts/slurm)
//	go run ./bench/live -demo                   # twice beside a busy loop
//
// Tasks sleep, and a run takes 60 to 120 s. In every second run the runtimes differ from their estimates by up to 30 %.
// Without errors a run must end within 5 % or 5 s of its control; with errors it must keep its budget; if it misses
// its deadline, the exit code must be 7, and 3 if the budget leaves tasks undone. The command uses a private corrald
// and leaves nothing behind.
package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/rig"
)

// A bench holds the flags.
type bench struct {
	runs, first int
	error       float64
	slurm, demo bool
	cpus        int
	dir, bin    string
	out         string
	stdout      io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := bench{stdout: stdout}
	f := flag.NewFlagSet("live", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&b.runs, "runs", 4, "`number` of runs; every second one has errors")
	f.IntVar(&b.first, "first", 0, "`number` of the first run, which determines its workflow")
	f.Float64Var(&b.error, "error", 0.3, "most by which runtimes differ from their estimates")
	f.BoolVar(&b.slurm, "slurm", false, "request pilots from a real Slurm of four nodes, which is started for this")
	f.BoolVar(&b.demo, "demo", false, "run a computing workflow twice beside a busy loop instead")
	f.IntVar(&b.cpus, "cpus", 8, "CPUs that this machine offers to sleeping tasks")
	f.StringVar(&b.dir, "dir", os.TempDir(), "parent `directory` of the working directory")
	f.StringVar(&b.bin, "bin", "bin", "`directory` with corral, corrald and pilot")
	f.StringVar(&b.out, "csv", "", "`file` for the results")
	if err := f.Parse(args); err != nil {
		return rig.Misuse // flag has printed the reason
	}
	if f.NArg() > 0 || b.runs < 1 || b.cpus < 1 || !(b.error >= 0 && b.error < 1) {
		fmt.Fprintln(stderr, "usage: live [flags]; -runs and -cpus are at least 1, and -error is below 1")
		return rig.Misuse
	}
	return rig.Code(stderr, "live", b.measure(ctx))
}

// measure starts a private corrald, executes all runs, and prints the table.
func (b bench) measure(ctx context.Context) error {
	return rig.Alone(b.bin, b.dir, "v", func(u *rig.User) (err error) {
		u.Env = append(u.Env, "CORRALD_MACHINE_CPUS="+strconv.Itoa(b.cpus))
		s := &stand{User: u, site: "local", bin: b.bin}
		if b.demo {
			return b.learn(ctx, s)
		}
		if b.slurm {
			slurm, trouble := rig.StartSlurm(ctx, filepath.Join(u.Dir, "slurm"), 4, 2)
			defer func() { err = errors.Join(err, u.End(), slurm.End()) }() // corrald needs the Slurm to end its pilots
			if trouble != nil {
				return trouble
			}
			s.site = "slurm"
			if err := s.follow(); err != nil {
				return err
			}
		}
		if err := s.start(ctx); err != nil {
			return err
		}
		var all []result
		for i := b.first; i < b.first+b.runs; i++ {
			by := 0.0
			if i%2 == 1 {
				by = b.error
			}
			r, err := s.compare(ctx, i, by)
			if err != nil {
				return fmt.Errorf("run %d: %w", i, err)
			}
			fmt.Fprintln(b.stdout, r)
			all = append(all, r)
		}
		return b.judge(all)
	})
}

// A result is a run beside its plan and its control. Times are in seconds, costs in cpu-hours.
type result struct {
	run, tasks, cpus          int
	site                      string
	error                     float64
	deadline, budget          float64
	predicted, taken, control float64
	cost, billed              float64
	exit                      int
	undone                    int  // tasks that the budget leaves undone
	announced                 bool // the client spoke of the deadline, or of tasks left undone, before the run's end
}

// near reports whether the run took as long as its control, within 5 % or 5 s.
func (r result) near() bool { return math.Abs(r.taken-r.control) <= max(0.05*r.control, 5) }

func (r result) late() bool       { return r.taken > r.deadline }
func (r result) overBudget() bool { return r.billed > r.budget }

// good reports whether the run kept what its plan promises.
func (r result) good() bool {
	switch {
	case r.overBudget() || !slices.Contains([]int{0, 3, 7}, r.exit) || (r.exit == 3) != (r.undone > 0):
		return false
	case r.undone > 0:
		return r.error > 0 && r.announced
	case r.late() != (r.exit == 7) || r.late() && !r.announced:
		return false
	}
	return r.error > 0 || r.near() && !r.late()
}

func (r result) String() string {
	return fmt.Sprintf("run %d at %s, %d tasks, error %g: %.1f s (plan %.1f, control %.1f, deadline %.1f), "+
		"%.4f ch (plan %.4f, budget %.4f), %d undone, exit code %d, announced %t: %t", r.run, r.site, r.tasks, r.error,
		r.taken, r.predicted, r.control, r.deadline, r.billed, r.cost, r.budget, r.undone, r.exit, r.announced,
		r.good())
}

// judge writes the results and fails if a run is not as promised.
func (b bench) judge(all []result) error {
	var text bytes.Buffer
	lines := csv.NewWriter(&text)
	_ = lines.Write([]string{"run", "site", "tasks", "cpus", "error", "deadline_s", "predicted_s", "taken_s",
		"control_s", "budget_ch", "predicted_ch", "billed_ch", "undone", "exit_code", "announced", "good"})
	bad := 0
	for _, r := range all {
		if !r.good() {
			bad++
		}
		number := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
		_ = lines.Write([]string{strconv.Itoa(r.run), r.site, strconv.Itoa(r.tasks), strconv.Itoa(r.cpus),
			number(r.error), number(r.deadline), number(r.predicted), number(r.taken), number(r.control),
			number(r.budget), number(r.cost), number(r.billed), strconv.Itoa(r.undone), strconv.Itoa(r.exit),
			strconv.FormatBool(r.announced), strconv.FormatBool(r.good())})
	}
	lines.Flush()
	fmt.Fprintf(b.stdout, "%d of %d runs are as promised\n", len(all)-bad, len(all))
	if b.out != "" {
		if err := os.WriteFile(b.out, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if bad > 0 {
		return corral.Errorf(corral.Failed, "%d of %d runs are not as promised", bad, len(all))
	}
	return nil
}

// learn runs a computing workflow twice beside busy loops: the second prediction should have learned from the first
// run.
func (b bench) learn(ctx context.Context, s *stand) error {
	s.Env = append(s.Env, "CORRALD_MACHINE_CPUS=2")
	if err := s.start(ctx); err != nil {
		return err
	}
	w := computing()
	stop := busy(ctx)
	defer stop()
	var off [2]float64
	for i := range off {
		r, err := s.compute(ctx, w, i)
		if err != nil {
			return err
		}
		off[i] = r.taken/r.predicted - 1
		fmt.Fprintf(b.stdout, "run %d: %.1f s predicted, %.1f s taken (%+.0f %%), exit code %d\n", i+1, r.predicted,
			r.taken, 100*off[i], r.exit)
	}
	if math.Abs(off[1]) > max(0.1, math.Abs(off[0])/2) {
		return corral.Errorf(corral.Failed, "the second prediction is off by %.0f %%, the first by %.0f %%", 100*off[1],
			100*off[0])
	}
	return nil
}

// wait is how long a command may take that executes no workflow.
const wait = 2 * time.Minute
