package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ways are Snakemake 7's ways to submit its jobs to Slurm. With --cluster it looks for each job's file every ten
// seconds; with --slurm it asks sacct for one job after the other. Each job starts Snakemake again, with --slurm twice.
var ways = [][]string{
	{"--cluster", "sbatch"},
	{"--slurm", "--max-status-checks-per-second", "1"},
}

// asked are the prefixes that Snakemake logs with a job's state: scontrol answers while sacct does not know the job
// yet.
var asked = []string{"The sacct output is:", "The scontrol output is:"}

// started is a line that each start of Snakemake logs, and that therefore appears in the output of each job.
const started = "Building DAG of jobs..."

// ended begins the line with which Snakemake reports that it has noticed a job's end.
const ended = "Finished job "

// A pipeline holds the results of Snakemake on a side, in one of the ways.
type pipeline struct {
	side, way string
	rules     int           // rules that sleep for a second; one more gathers their files
	took      time.Duration // from Snakemake's start to its end
	start     time.Duration // CPU time of Snakemake alone, in a dry run for one file
	starts    int           // starts of Snakemake in jobs
	asks      int           // queries for the state of a job
	late      time.Duration // mean time from when a job wrote its file to when Snakemake noticed its end
}

// snakemake measures Snakemake on the requested sides, one after the other. These sides are not those of the other
// measurements: their Slurms keep accounting records, from which --slurm reads the states of jobs.
func (b bench) snakemake(ctx context.Context, peers string) ([]pipeline, error) {
	accounts := slurm{env: []string{"ACCOUNTING=1"}}
	var all []pipeline
	for _, kind := range []struct {
		name  string
		start func(context.Context, string) (*side, error)
		rules int
	}{
		{"shim", b.startShim, b.rules},
		{"slurm", accounts.named("Slurm, idle").start, b.rules},
		{"deferred", accounts.named("Slurm, deferring", deferring).start, b.deferredRules},
	} {
		if kind.rules == 0 || !slices.Contains(strings.Split(b.sides, ","), kind.name) {
			continue
		}
		err := b.on(ctx, peers, kind.start, func(s *side) error {
			for i, way := range ways {
				p, err := s.measureSnakemake(ctx, filepath.Join(s.dir, "w"+strconv.Itoa(i)), way, kind.rules)
				if err != nil {
					return fmt.Errorf("%s: snakemake %s: %w", s.name, way[0], err)
				}
				fmt.Fprintf(b.stderr, "shim: %s: snakemake %s took %s\n", s.name, way[0], p.took.Round(time.Second))
				all = append(all, p)
			}
			return nil
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// measureSnakemake makes Snakemake run that many rules in a new directory.
func (s *side) measureSnakemake(ctx context.Context, dir string, way []string, rules int) (pipeline, error) {
	p := pipeline{side: s.name, way: way[0], rules: rules}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return p, err
	}
	if err := os.WriteFile(filepath.Join(dir, "Snakefile"), fmt.Appendf(nil, snakefile, rules), 0o666); err != nil {
		return p, err
	}
	var err error
	if p.start, err = s.snakemakeStart(ctx, dir); err != nil {
		return p, err
	}
	cmd, err := s.snakemakeCommand(ctx, dir,
		append([]string{"--verbose", "--latency-wait", "60", "-j", strconv.Itoa(rules)}, way...)...)
	if err != nil {
		return p, err
	}
	began := time.Now()
	seen, err := p.follow(cmd)
	p.took = time.Since(began)
	if err != nil {
		return p, err
	}
	written, err := writtenIn(dir, rules)
	if err != nil {
		return p, err
	}
	if len(seen) != rules+1 {
		return p, fmt.Errorf("snakemake reported the ends of %d of %d jobs", len(seen), rules+1)
	}
	p.late = mean(seen[:rules], began) - mean(written, began) // the gathering rule ends last
	p.starts, err = startsIn(dir)
	return p, err
}

// snakefile has the rules that sleep, and the target rule, which gathers their files. Each file contains the time of
// its writing, because Snakemake touches the file when it notices it.
const snakefile = `rule gather:
    input: expand("{n}.txt", n=range(%d))
    output: "all.txt"
    shell: "cat {input} >{output}"

rule part:
    output: "{n,[0-9]+}.txt"
    shell: "sleep 1; echo {wildcards.n} $(date +%%s.%%N) >{output}"
`

// snakemakeCommand prepares a call of Snakemake in a directory. It clears CI, because in a CI run Snakemake would look
// for files every second, and sets USER, because Snakemake reads the user's name only from there.
func (s *side) snakemakeCommand(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	cmd := s.command(ctx, "snakemake", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "CI=", "USER="+me.Username)
	return cmd, nil
}

// snakemakeStart returns the CPU time that Snakemake needs to plan the making of one file, which it does in each job
// before the job's work: the median of three runs, after one that warms the caches.
func (s *side) snakemakeStart(ctx context.Context, dir string) (time.Duration, error) {
	var took []time.Duration
	for range 4 {
		cmd, err := s.snakemakeCommand(ctx, dir, "--dry-run", "--quiet", "all", "--", "0.txt")
		if err != nil {
			return 0, err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("dry run: %w: %.500s", err, out)
		}
		took = append(took, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return median(took[1:]), nil
}

// follow runs Snakemake, counts its state queries, and returns the times at which it reported the ends of jobs.
func (p *pipeline) follow(cmd *exec.Cmd) (seen []time.Time, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close()
	if err != nil {
		return nil, err
	}
	var last []string // the last lines, for an error message
	for log := bufio.NewReader(r); ; {
		line, err := log.ReadString('\n')
		if strings.HasPrefix(line, ended) {
			seen = append(seen, time.Now())
		}
		if slices.ContainsFunc(asked, func(answer string) bool { return strings.HasPrefix(line, answer) }) {
			p.asks++
		}
		last = append(last[max(0, len(last)-9):], line)
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.Join(last, ""))
	}
	return seen, nil
}

// writtenIn returns the times at which the gathered files were written. A missing file is an error.
func writtenIn(dir string, rules int) (written []time.Time, err error) {
	all, err := os.ReadFile(filepath.Join(dir, "all.txt"))
	if err != nil {
		return nil, fmt.Errorf("the gathering rule did not write its file: %w", err)
	}
	for line := range strings.Lines(string(all)) {
		var n int
		var at float64
		if _, err := fmt.Sscanf(line, "%d %f\n", &n, &at); err != nil || n != len(written) {
			return nil, fmt.Errorf("rule %d wrote %.100q", len(written), line)
		}
		written = append(written, time.UnixMicro(int64(at*1e6)))
	}
	if len(written) != rules {
		return nil, fmt.Errorf("%d of %d files were gathered", len(written), rules)
	}
	return written, nil
}

// mean returns the mean distance of the times from a given time.
func mean(list []time.Time, from time.Time) (sum time.Duration) {
	for _, t := range list {
		sum += t.Sub(from)
	}
	return sum / time.Duration(len(list))
}

// startsIn counts the starts of Snakemake in the outputs of jobs: with --cluster in the directory, and with --slurm in
// .snakemake/slurm_logs/RULE.
func startsIn(dir string) (n int, err error) {
	for _, pattern := range []string{"slurm-*.out", ".snakemake/slurm_logs/*/*.log"} {
		outputs, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return 0, err
		}
		for _, output := range outputs {
			text, err := os.ReadFile(output)
			if err != nil {
				return 0, err
			}
			n += strings.Count(string(text), started)
		}
	}
	return n, nil
}

// reportSnakemake prints a table with a row for each side and way.
func reportSnakemake(w io.Writer, all []pipeline) {
	fmt.Fprint(w, "\n| Snakemake | by | rules | wall, s | work ÷ cpus, s | its starts in jobs | cpu s each "+
		"| these ÷ cpus, s | both ÷ wall | asked for states | saw an end after, s |\n"+
		strings.Repeat("| --- ", 11)+"|\n")
	for _, p := range all {
		work := float64(p.rules) / cpus
		starts := float64(p.starts) * p.start.Seconds() / cpus
		fmt.Fprintf(w, "| %s | %s | %d | %.1f | %.1f | %d | %.2f | %.1f | %.0f %% | %d | %.1f |\n",
			p.side, p.way, p.rules, p.took.Seconds(), work, p.starts, p.start.Seconds(), starts,
			100*(work+starts)/p.took.Seconds(), p.asks, p.late.Seconds())
	}
}
