package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Chapter 2 of the thesis compares workflows whose jobs are submitted to a site one by one, through Globus, with the
// same workflows on pilots (experiments E2.3 to E2.7). Here both are simulated: jobs in package plan/sim/queue, pilots
// in package sim, which decides like the production code. Published values about its sites are used unchanged, and
// nothing is fitted. Unpublished values are varied, or marked as assumed: see docs/bench.

// A thesisSite contains a site's values from tables 2.1 and 2.2.
type thesisSite struct {
	name              string
	job               time.Duration // mean duration of a no-op job through GT2
	setup, allocation time.Duration
}

var (
	mercury = thesisSite{"NCSA Mercury", seconds(61.1), seconds(29.5), seconds(52.5)}
	abe     = thesisSite{"NCSA Abe", seconds(35.8), seconds(28.4), seconds(35.3)}
	ia64    = thesisSite{"SDSC IA-64", seconds(263.3), seconds(28.4), seconds(97.0)}
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// A batchSystem describes how a batch system starts jobs, which the duration of a no-op job does not show.
type batchSystem struct {
	name     string
	gap      time.Duration // between two starts
	interval time.Duration // between two scans of the queue
}

var (
	// PBS 2.1.8 started 0.45 jobs a second, and Condor 6.7.2 0.49 (Raicu, Zhao, Dumitrescu, Foster and Wilde: Falkon:
	// a fast and light-weight task execution framework, SC 2007, table 2).
	pbs = batchSystem{name: "0.45 starts/s", gap: 2220 * time.Millisecond}
	// Batch systems look at their queues periodically, at intervals of up to several minutes (E2.2; F51 has 60 s).
	periodic = batchSystem{name: "looks every 60 s", interval: time.Minute}
	atOnce   = batchSystem{name: "starts at once"}
)

// grid returns a way to a machine. A job waits for half an interval on average, which the duration of a no-op job
// includes.
func (s thesisSite) grid(b batchSystem, m queue.Machine) grid {
	m.Interval = b.interval
	return grid{way: max(0, s.job-b.interval/2), gap: b.gap, queue: queue.New(m, nil)}
}

// provisioning returns the time for getting pilots at a site without other jobs.
func (s thesisSite) provisioning() place { return place{setup: s.setup, allocation: s.allocation} }

// pool is the thesis's Condor pool: starting a job takes a second or two (table 2.2), and a fifth of a second if a
// worker takes another of the same shape (docs/bench, overheads on an HTCondor cluster).
var pool = plan.Cluster{Hop: 2 * time.Second, Reuse: 200 * time.Millisecond}

// A comparison is one workflow, job by job and on pilots.
type comparison struct {
	experiment, name string
	schedule         time.Duration // its list schedule
	direct           time.Duration // job by job
	pilots           time.Duration // without provisioning
	provisioned      time.Duration // with provisioning
	published        string
}

// less returns by how many percent a is less than b.
func less(a, b time.Duration) float64 { return 100 * (1 - float64(a)/float64(b)) }

// A claim is a statement of the thesis, with the limits for accepting it.
type claim struct {
	row, what      string
	got, low, high float64
	unit           string
}

// verdict reports whether a claim is met.
func (c claim) verdict() string {
	if c.got >= c.low && c.got <= c.high {
		return "met"
	}
	return "missed"
}

// asItIs returns a workflow whose tasks sleep for the given durations.
func asItIs(wf *workflow.Workflow, of func(t *workflow.Task) time.Duration) asleep {
	a := asleep{wf: wf, times: make([]time.Duration, len(wf.Tasks))}
	for i := range a.times {
		a.times[i] = max(time.Millisecond, of(&wf.Tasks[i]).Round(time.Millisecond))
	}
	return a
}

func measured2012(t *workflow.Task) time.Duration { return t.Runtime }

// A study makes comparisons, and stores the results.
type study struct {
	comparisons []comparison
	series      []series
	productions []production
	claims      []claim
}

func (s *study) claim(c claim) { s.claims = append(s.claims, c) }

// A setting is where a workflow is run: on the given number of cpus of a site without other jobs.
type setting struct {
	cpus   int
	site   thesisSite
	system batchSystem
}

// compare compares a workflow job by job with pilots, in the given number of groups for each level, or task by task if
// it is 0.
func (s *study) compare(c comparison, a asleep, groups int, in setting) (comparison, error) {
	cpus := in.cpus
	c.schedule = a.listSchedule(cpus)
	var of [][]int
	var rule clustering.Rule
	if groups > 0 {
		of, rule = dag.ByLevel(a.wf.Graph, groups, nil), clustering.Levels(groups)
	}
	var err error
	machine := queue.Machine{Processors: cpus, Policy: queue.FCFS}
	if c.direct, err = in.site.grid(in.system, machine).run(jobs(a.wf.Graph, a.times, of)); err != nil {
		return c, err
	}
	on := blocks{hosts: cpus}
	if c.pilots, err = on.run(a, rule, place{}, pool); err != nil {
		return c, err
	}
	c.provisioned, err = on.run(a, rule, in.site.provisioning(), pool)
	s.comparisons = append(s.comparisons, c)
	return c, err
}

// chapter2 simulates the experiments and prints the results beside the published ones. It returns an error if a claim
// is missed.
func (b bench) chapter2(context.Context) error {
	var s study
	if err := s.simulate(b.draws, b.tasks); err != nil {
		return err
	}
	d, err := drained(cyberShake(shakeTasks))
	if err != nil {
		return err
	}
	s.claim(claim{row: "F55", what: "tasks a second that pass through the release queue of 840,000", got: d.perSecond(),
		low: shakeRate, high: 1e9, unit: "/s"})
	s.claim(claim{row: "F55", what: "memory that it takes", got: d.mib, high: 1024, unit: "MiB"})
	return s.print(b)
}

// simulate runs all simulations, which do not depend on this machine.
func (s *study) simulate(draws, tasks int) error {
	if err := s.broadband(); err != nil {
		return err
	}
	if err := s.montage(); err != nil {
		return err
	}
	if err := s.epigenome(draws); err != nil {
		return err
	}
	return s.cyberShake(tasks)
}

// print prints everything.
func (s *study) print(b bench) error {
	r := &report{out: b.stdout}
	r.print("Minutes; less: pilots than job by job, without and with what it takes to get them.\n\n")
	r.print("| | case | list schedule | job by job | pilots | with provisioning | less %% | with provisioning %% ")
	r.print("| thesis |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range s.comparisons {
		r.print("| %s | %s | %.1f | %.1f | %.1f | %.1f | %.0f | %.0f | %s |\n", c.experiment, c.name,
			c.schedule.Minutes(), c.direct.Minutes(), c.pilots.Minutes(), c.provisioned.Minutes(),
			less(c.pilots, c.direct), less(c.provisioned, c.direct), c.published)
	}
	r.print("\nE2.4 in all settings: by how many percent pilots are faster, mean and most.\n\n")
	r.print("| site | batch system | task by task | by level |\n| --- | --- | --- | --- |\n")
	for _, g := range s.series {
		r.print("| %s | %s | %.0f, %.0f | %.0f, %.0f |\n", g.site.name, g.system.name, mean(g.plain),
			slices.Max(g.plain), mean(g.clustered), slices.Max(g.clustered))
	}
	r.print("\n| E2.7: starts/s at most | tasks | cpus | hours | tasks/s | used %% |\n")
	r.print("| --- | --- | --- | --- | --- | --- |\n")
	for _, p := range s.productions {
		r.print("| %.4g | %d | %d | %.2f | %.3g | %.0f |\n", p.rate, p.tasks, p.cpus, p.took.Hours(), p.perSecond(),
			100*p.used)
	}
	r.print("\n| | claim | found | wanted | |\n| --- | --- | --- | --- | --- |\n")
	missed := 0
	for _, c := range s.claims {
		if c.verdict() == "missed" {
			missed++
		}
		r.print("| %s | %s | %.1f %s | %g to %g | %s |\n", c.row, c.what, c.got, c.unit, c.low, c.high, c.verdict())
	}
	if r.err == nil && missed > 0 {
		return fmt.Errorf("%d of %d claims are missed", missed, len(s.claims))
	}
	return r.err
}
