package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
)

// A job is a job of a trace: its request, and how long it waited.
type job struct {
	submitted, waited time.Duration // since the trace's beginning; how long it waited
	cpus              int
	walltime          time.Duration
}

// alike reports whether two jobs are in one class: each has at most twice the processors and requested time of the
// other.
func (j job) alike(k job) bool {
	return j.cpus <= 2*k.cpus && k.cpus <= 2*j.cpus && j.walltime <= 2*k.walltime && k.walltime <= 2*j.walltime
}

// A trace is a list of jobs in the order of submission.
type trace []job

// readTrace reads lines of four numbers: seconds since the previous job, seconds waited, processors, seconds requested.
func readTrace(file string) (all trace, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var now time.Duration
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var since, waited, walltime int
		var j job
		if _, err := fmt.Sscanf(lines.Text(), "%d,%d,%d,%d", &since, &waited, &j.cpus, &walltime); err != nil {
			return nil, fmt.Errorf("reading %s, job %d: %w", file, len(all)+1, err)
		}
		now += time.Duration(since) * time.Second
		j.submitted, j.waited = now, time.Duration(waited)*time.Second
		j.walltime = time.Duration(walltime) * time.Second
		all = append(all, j)
	}
	return all, lines.Err()
}

// epoch is the beginning of traces.
var epoch = time.Date(1996, 9, 23, 0, 0, 0, 0, time.UTC)

// recent is how many earlier jobs corrald would remember.
const recent = 4000

// waits returns what was known when job i was submitted: how long the jobs before it had waited by then. Waits that had
// not ended are censored.
func (t trace) waits(i int) []corral.Wait {
	now := epoch.Add(t[i].submitted)
	var all []corral.Wait
	for _, j := range t[max(0, i-recent):i] {
		w := corral.Wait{Site: "kth", Hosts: 1, CPUs: j.cpus, Walltime: corral.Seconds(j.walltime),
			SubmittedAt: epoch.Add(j.submitted)}
		if start := w.SubmittedAt.Add(j.waited); !start.After(now) {
			w.StartedAt = start
		}
		all = append(all, w)
	}
	return all
}

// known returns corrald's prediction of the waits of jobs like i at its submission, as an estimate or as a bound.
func (t trace) known(i int, bound bool) func(share float64) time.Duration {
	facts := provision.Facts{Site: corral.Site{Name: "kth", Batch: "slurm", State: corral.SiteReady,
		Facts: &corral.SiteFacts{Queues: []corral.SiteQueue{{Default: true, Nodes: 100, CPUs: 1}}}}, Waits: t.waits(i)}
	c := provision.Caution{Share: 0.5, Bound: bound}
	sites, _ := provision.Sites([]provision.Facts{facts}, c, epoch.Add(t[i].submitted))
	shape := plan.Shape{Hosts: t[i].cpus, Host: corral.Resources{CPUs: 1}, Walltime: t[i].walltime}
	return func(share float64) time.Duration { return sites[0].Quantile(shape, share) }
}

// mean returns the mean of the waits that had ended when job i was submitted.
func (t trace) mean(i int) time.Duration {
	var sum time.Duration
	n := 0
	for _, w := range t.waits(i) {
		if !w.StartedAt.IsZero() && w.CPUs <= 2*t[i].cpus && t[i].cpus <= 2*w.CPUs {
			sum, n = sum+w.StartedAt.Sub(w.SubmittedAt), n+1
		}
	}
	return sum / time.Duration(max(1, n))
}

// truth returns the quantile of the waits of the next n jobs with at least half and at most twice the processors of job
// i: the quantity that a prediction at its submission should match.
func (t trace) truth(i, n int, share float64) time.Duration {
	var next []time.Duration
	for _, j := range t[i:] {
		if j.cpus <= 2*t[i].cpus && t[i].cpus <= 2*j.cpus {
			if next = append(next, j.waited); len(next) == n {
				break
			}
		}
	}
	slices.Sort(next)
	return next[min(len(next)-1, int(share*float64(len(next))))]
}

// next returns the wait of a pilot like job i that is submitted at the given time: that of the next job of its class;
// ok is false at the trace's end.
func (t trace) next(i int, at time.Duration) (waited time.Duration, ok bool) {
	first, _ := slices.BinarySearchFunc(t, at, func(j job, at time.Duration) int { return int(j.submitted - at) })
	for _, j := range t[first:] {
		if j.alike(t[i]) {
			return j.waited, true
		}
	}
	return 0, false
}
