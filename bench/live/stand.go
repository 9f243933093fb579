package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/plan"
)

// A stand is a user with a private corrald and a site.
type stand struct {
	*rig.User
	site, bin string
}

// start starts corrald, and adds the site.
func (s *stand) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := s.Corral(ctx, "up"); err != nil || s.site == "local" {
		return err
	}
	_, err := s.Corral(ctx, "site", "create", s.site, "--contact", "local:", "--batch", "slurm", "--wait")
	return err
}

// follow gives the user the environment of this process, in which Slurm's commands are found.
func (s *stand) follow() error {
	bin, err := filepath.Abs(s.bin)
	s.Env = append(s.Env, "PATH="+bin+":"+os.Getenv("PATH"), "SLURM_CONF="+os.Getenv("SLURM_CONF"))
	return err
}

// wished is the makespan that a run should have.
const wished = 80 * time.Second

// aim returns the bounds of a run: those of the point of the front that ends nearest to the wished time, with some
// slack.
func (s *stand) aim(ctx context.Context, file string, slack float64) (flags []string, r result, err error) {
	pl, err := s.plan(ctx, file, "--objective", "makespan")
	if err != nil {
		return nil, r, err
	}
	best := pl.Point
	for _, p := range pl.Front {
		if far(p) < far(best) {
			best = p
		}
	}
	r.deadline = slack * time.Duration(best.Makespan).Seconds()
	flags = []string{"--site", s.site, "--no-learn", "--objective", "cost",
		"--deadline", strconv.FormatFloat(r.deadline, 'f', 3, 64) + "s", "--budget"}
	// A plan with a budget allows for the time in which its pilots end.
	bounded, err := s.plan(ctx, file, append(flags[3:], "1000"+string(best.Cost.Unit))...)
	if err != nil {
		return nil, r, err
	}
	r.budget = 1.1 * bounded.Cost.Money.Units()
	return append(flags, strconv.FormatFloat(r.budget, 'f', 6, 64)+string(best.Cost.Unit)), r, nil
}

func far(p plan.Point) time.Duration { return (time.Duration(p.Makespan) - wished).Abs() }

// plan makes a plan that is not stored.
func (s *stand) plan(ctx context.Context, file string, flags ...string) (*plan.Plan, error) {
	out, err := s.Corral(ctx, append([]string{"plan", file, "--site", s.site, "--no-learn", "--dry-run", "-o", "json"},
		flags...)...)
	if err != nil {
		return nil, err
	}
	var row struct{ Plan *plan.Plan }
	if err := json.Unmarshal(out, &row); err != nil || row.Plan == nil {
		return nil, errors.Join(errors.New("corral plan printed no plan"), err)
	}
	return row.Plan, nil
}

// compare executes one workflow by a plan, and beside it its control.
func (s *stand) compare(ctx context.Context, number int, by float64) (r result, err error) {
	w := drawn(number, by)
	file := filepath.Join(s.Dir, fmt.Sprintf("w%d.json", number))
	if err := w.write(file); err != nil {
		return r, err
	}
	slack := 1.1
	if by > 0 {
		slack = 1.3
	}
	flags, r, err := s.aim(ctx, file, slack)
	if err != nil {
		return r, err
	}
	pl, err := s.plan(ctx, file, flags[3:]...) // for the control
	if err != nil {
		return r, err
	}
	ended := make(chan time.Duration, 1)
	go func() { ended <- w.control(ctx, pl.Pilots) }()
	r.run, r.site, r.tasks, r.error, r.cpus = number, s.site, len(w.tasks), by, pl.PeakCPUs
	err = s.execute(ctx, &r, append([]string{"run", file, "--auto"}, flags...))
	r.control = (<-ended).Seconds()
	return r, err
}

// compare's last line of a run, which the client prints.
var verdict = regexp.MustCompile(`plan \d+: (\S+) predicted, (\S+) taken \(.*\)` +
	`(?:; ([0-9.e-]+)ch predicted, ([0-9.e-]+)ch billed)?`)

// undone matches the client's line about a budget that does not suffice.
var undone = regexp.MustCompile(`the budget of \S+ leaves (\d+) of \d+ tasks undone`)

// execute runs the client, and reads what it prints at the end of a run.
func (s *stand) execute(ctx context.Context, r *result, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "corral"), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), s.Env...), &text, &text
	err := cmd.Run()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	r.exit = cmd.ProcessState.ExitCode()
	found := verdict.FindStringSubmatch(text.String())
	if found == nil {
		return fmt.Errorf("corral %s: exit code %d: %.2000s", strings.Join(args, " "), r.exit, text.String())
	}
	predicted, err := time.ParseDuration(found[1])
	if err != nil {
		return err
	}
	taken, err := time.ParseDuration(found[2])
	if err != nil {
		return err
	}
	r.predicted, r.taken = predicted.Seconds(), taken.Seconds()
	r.cost, _ = strconv.ParseFloat(found[3], 64)
	r.billed, _ = strconv.ParseFloat(found[4], 64)
	before, _, _ := strings.Cut(text.String(), found[0])
	r.announced = strings.Contains(before, "deadline")
	if left := undone.FindStringSubmatch(text.String()); left != nil {
		r.announced = true
		r.undone, err = strconv.Atoi(left[1])
	}
	return err
}

// compute executes a computing workflow, whose estimates a quiet machine would meet.
func (s *stand) compute(ctx context.Context, w *flow, number int) (r result, err error) {
	file := filepath.Join(s.Dir, "computing.json")
	if err := w.write(file); err != nil {
		return r, err
	}
	r.run = number
	return r, s.execute(ctx, &r, []string{"run", file, "--auto", "--site", s.site, "--deadline", "10m"})
}
