package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan says how much to measure on a side.
type plan struct {
	jobs    int // jobs that sleep
	noops   int // jobs that do nothing
	pending int // thousands; 0: squeue is not measured
}

// measured holds the results of a side.
type measured struct {
	name     string
	plan     plan
	submits  []time.Duration // of sbatch, for each job that sleeps
	noops    []time.Duration // of sbatch -W, for a job that does nothing
	queues   []time.Duration // of squeue
	pending  int             // jobs that squeue listed
	jobs     time.Duration   // from the first sbatch to the end of the last job
	makeflow time.Duration   // from its start to its end
}

// look is the interval between two checks for an empty queue.
const look = 500 * time.Millisecond

// squeues is the number of times that squeue is measured.
const squeues = 5

// measure takes all measurements of a side.
func (s *side) measure(ctx context.Context, p plan, progress io.Writer) (measured, error) {
	m := measured{name: s.name, plan: p}
	for _, step := range []struct {
		what string
		do   func(context.Context, *measured) error
	}{
		{"no work", s.measureNoops}, {"sleeping jobs", s.measureJobs}, {"Makeflow", s.measureMakeflow},
		{"squeue", s.measureQueue},
	} {
		began := time.Now()
		if err := step.do(ctx, &m); err != nil {
			return m, fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Fprintf(progress, "shim: %s: %s took %s\n", s.name, step.what, time.Since(began).Round(time.Second))
	}
	return m, nil
}

// measureNoops runs jobs that do nothing, and waits for each, like a client that needs the result. The first one, which
// runs with cold caches, does not count.
func (s *side) measureNoops(ctx context.Context, m *measured) error {
	for i := range m.plan.noops + 1 {
		began := time.Now()
		if _, err := s.output(ctx, "sbatch", "-W", "-o", "/dev/null", "--wrap", "true"); err != nil {
			return err
		}
		if i > 0 {
			m.noops = append(m.noops, time.Since(began))
		}
	}
	return nil
}

// measureJobs submits jobs that sleep for a second, one after the other, and waits until all have ended.
func (s *side) measureJobs(ctx context.Context, m *measured) error {
	first := time.Now()
	for range m.plan.jobs {
		began := time.Now()
		if _, err := s.output(ctx, "sbatch", "-o", "/dev/null", "--wrap", "sleep 1"); err != nil {
			return err
		}
		m.submits = append(m.submits, time.Since(began))
	}
	err := s.until(ctx, func(queue string) bool { return queue == "" })
	m.jobs = time.Since(first)
	return err
}

// until waits until wanted accepts the queue, which it gets as one line with the state for each job.
func (s *side) until(ctx context.Context, wanted func(queue string) bool) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		queue, err := s.output(ctx, "squeue", "-h", "-o", "%t")
		if err != nil || wanted(queue) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// measureMakeflow makes Makeflow submit the same number of jobs that sleep for a second, each of which writes a file.
func (s *side) measureMakeflow(ctx context.Context, m *measured) error {
	dir := filepath.Join(s.dir, "m")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	var rules strings.Builder
	for i := range m.plan.jobs {
		fmt.Fprintf(&rules, "o%d:\n\tsleep 1; echo %d >o%d\n\n", i, i, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makeflow"), []byte(rules.String()), 0o666); err != nil {
		return err
	}
	cmd := s.command(ctx, "makeflow", "-T", "slurm", "--ignore-memory-spec",
		"--max-remote", strconv.Itoa(m.plan.jobs), "Makeflow")
	cmd.Dir = dir
	began := time.Now()
	out, err := cmd.CombinedOutput()
	m.makeflow = time.Since(began)
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, out)
	}
	for i := range m.plan.jobs {
		if _, err := os.Stat(filepath.Join(dir, "o"+strconv.Itoa(i))); err != nil {
			return fmt.Errorf("a job did not write its file: %w", err)
		}
	}
	return s.until(ctx, func(queue string) bool { return queue == "" })
}

// measureQueue makes squeue list pending jobs: tasks of arrays of a thousand, behind a job that occupies all CPUs.
func (s *side) measureQueue(ctx context.Context, m *measured) error {
	if m.plan.pending == 0 {
		return nil
	}
	all := strconv.Itoa(cpus)
	if _, err := s.output(ctx, "sbatch", "-c", all, "-o", "/dev/null", "--wrap", "sleep 3600"); err != nil {
		return err
	}
	if err := s.until(ctx, func(queue string) bool { return queue == "R" }); err != nil {
		return err
	}
	for range m.plan.pending {
		if _, err := s.output(ctx, "sbatch", "--array=0-999", "-o", "/dev/null", "--wrap", "true"); err != nil {
			return err
		}
	}
	for range squeues {
		began := time.Now()
		out, err := s.output(ctx, "squeue", "-h", "-r", "-t", "PD", "-o", "%i %t")
		if err != nil {
			return err
		}
		m.queues, m.pending = append(m.queues, time.Since(began)), strings.Count(out, "\n")+1
	}
	if m.pending < 1000*m.plan.pending {
		return fmt.Errorf("squeue listed %d of %d jobs", m.pending, 1000*m.plan.pending)
	}
	me, err := user.Current()
	if err == nil {
		_, err = s.output(ctx, "scancel", "-u", me.Username)
	}
	return err
}

// median returns the middle value, or the lower one of the two middle values.
func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)/2]
}
