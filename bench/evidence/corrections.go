package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// An ended task of a run: its runtime and its original estimate, in seconds.
type ended struct{ took, estimate float64 }

// A correction is a rule for the factor by which the remaining tasks of a kind differ from their estimates, given the
// tasks of the kind and of all kinds that have ended.
type correction struct {
	name   string
	factor func(kind, all []ended) float64
}

// corrections lists the rules: first none, second Corral's.
var corrections = []correction{
	{"none", func(_, _ []ended) float64 { return 1 }},
	{"Corral's: ratio of sums by kind and 1 task as estimated", func(kind, _ []ended) float64 {
		var c profile.Correction
		for _, t := range kind {
			c = c.With(time.Duration(t.took*1e9), time.Duration(t.estimate*1e9))
		}
		factor, _ := c.Factor(false)
		return factor
	}},
	{"the same, 3 tasks as estimated", func(kind, _ []ended) float64 { return ratio(kind, 3) }},
	{"the same, 10 tasks as estimated", func(kind, _ []ended) float64 { return ratio(kind, 10) }},
	{"median of ratios by kind and 3 tasks as estimated", func(kind, _ []ended) float64 { return median(kind, 3) }},
	{"one ratio of sums for all kinds", func(_, all []ended) float64 { return ratio(all, 0) }},
}

// ratio returns the sum of runtimes over that of estimates, shrunk as if more tasks had taken the mean estimate.
func ratio(tasks []ended, more float64) float64 {
	var took, estimated float64
	for _, t := range tasks {
		took, estimated = took+t.took, estimated+t.estimate
	}
	if estimated == 0 {
		return 1
	}
	prior := more * estimated / float64(len(tasks))
	return (took + prior) / (estimated + prior)
}

// median returns the median of the ratios, as if more tasks had taken their estimates.
func median(tasks []ended, more int) float64 {
	all := slices.Repeat([]float64{1}, more)
	for _, t := range tasks {
		if t.estimate > 0 {
			all = append(all, t.took/t.estimate)
		}
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// A miss is the error of one rule for the runs of an application.
type miss struct {
	tasks float64 // Σ |runtime − estimate at the task's start| ÷ Σ runtime
	rest  float64 // mean of |work left − expected| ÷ work left, at most 2, at each tenth of a run
}

// A replayed run knows the estimates of its tasks from the other runs of its application.
type replayed struct {
	flow      *workflow.Workflow
	kinds     []int32
	estimates []float64 // negative: unknown
}

// replayedOf estimates the tasks of a run from the other runs.
func replayedOf(runs []published, k int) (r replayed, err error) {
	others := profile.New()
	for j, p := range runs {
		if j == k {
			continue
		}
		run, err := profile.Of(profile.Samples(p.flow, p.name()))
		if err == nil {
			err = others.Merge(run)
		}
		if err != nil {
			return r, err
		}
	}
	flow := runs[k].flow
	subjects, estimator := profile.Tasks(flow), profile.NewEstimator(others, nil)
	r = replayed{flow, profile.Kinds(subjects), make([]float64, len(subjects))}
	for i, s := range subjects {
		size, known := profile.InputBytes(flow, i)
		if !known {
			size = -1
		}
		s.Host = ""
		r.estimates[i] = -1
		if x, ok := estimator.Estimate(s, size); ok && flow.Tasks[i].Measured() {
			r.estimates[i] = x.Point.Seconds()
		}
	}
	return r, nil
}

// A course is the course of a replayed run: tasks begin in the order of their estimated ranks, and take as long as they
// were measured.
type course struct {
	replayed
	rank    []time.Duration
	pending []int // parents that have not ended
	ready   []int
	running []int // by end
	ends    []time.Duration
	over    []bool
	ended   map[int32][]ended
	all     []ended
	factors map[int32][]float64 // by rule, until a task of the kind ends
}

// play plays a run on a number of cpus and calls begin for each task that begins, and tenth for each tenth of the tasks
// that has ended.
func (r replayed) play(cpus int, begin func(c *course, i int), tenth func(c *course)) {
	n := len(r.flow.Tasks)
	c := &course{replayed: r, pending: make([]int, n), ends: make([]time.Duration, n), over: make([]bool, n),
		ended: map[int32][]ended{}, factors: map[int32][]float64{}}
	estimates := make([]time.Duration, n)
	for i := range n {
		estimates[i] = time.Duration(max(0, r.estimates[i]) * 1e9)
		if c.pending[i] = len(r.flow.Graph.Parents(i)); c.pending[i] == 0 {
			c.ready = append(c.ready, i)
		}
	}
	c.rank = r.flow.Graph.UpwardRanks(estimates)
	var now time.Duration
	for done := 1; done <= n; done++ {
		slices.SortStableFunc(c.ready, func(a, b int) int { return cmp.Or(cmp.Compare(c.rank[b], c.rank[a]), a-b) })
		for len(c.ready) > 0 && len(c.running) < cpus {
			i := c.ready[0]
			c.ready, c.running = c.ready[1:], append(c.running, i)
			c.ends[i] = now + r.flow.Tasks[i].Runtime
			begin(c, i)
		}
		slices.SortStableFunc(c.running, func(a, b int) int { return cmp.Compare(c.ends[a], c.ends[b]) })
		now = c.end()
		if done*10/n > (done-1)*10/n && done < n {
			tenth(c)
		}
	}
}

// end ends the first running task and returns when that was.
func (c *course) end() time.Duration {
	i := c.running[0]
	c.running, c.over[i] = c.running[1:], true
	if k := c.kinds[i]; c.estimates[i] >= 0 {
		t := ended{c.flow.Tasks[i].Runtime.Seconds(), c.estimates[i]}
		c.ended[k], c.all = append(c.ended[k], t), append(c.all, t)
		clear(c.factors) // some rules use all kinds
	}
	for _, child := range c.flow.Graph.Children(i) {
		if c.pending[child]--; c.pending[child] == 0 {
			c.ready = append(c.ready, child)
		}
	}
	return c.ends[i]
}

// expected returns the runtime of a task that each rule expects.
func (c *course) expected(i int) []float64 {
	k := c.kinds[i]
	if c.factors[k] == nil {
		for _, rule := range corrections {
			c.factors[k] = append(c.factors[k], rule.factor(c.ended[k], c.all))
		}
	}
	expected := slices.Clone(c.factors[k])
	for r := range expected {
		expected[r] *= c.estimates[i]
	}
	return expected
}

// missesOf replays the runs of an application on a number of cpus.
func missesOf(runs []replayed, cpus int) []miss {
	all := make([]miss, len(corrections))
	var sum, looks float64
	for _, r := range runs {
		r.play(cpus, func(c *course, i int) {
			if c.estimates[i] < 0 {
				return
			}
			took := c.flow.Tasks[i].Runtime.Seconds()
			sum += took
			for k, x := range c.expected(i) {
				all[k].tasks += math.Abs(took - x)
			}
		}, func(c *course) {
			var left float64
			expected := make([]float64, len(corrections))
			for i := range c.over {
				if c.over[i] || slices.Contains(c.running, i) || c.estimates[i] < 0 {
					continue
				}
				left += c.flow.Tasks[i].Runtime.Seconds()
				for k, x := range c.expected(i) {
					expected[k] += x
				}
			}
			if left == 0 {
				return
			}
			looks++
			for k, x := range expected {
				all[k].rest += min(2, math.Abs(x-left)/left)
			}
		})
	}
	for k := range all {
		all[k].tasks /= cmp.Or(sum, 1)
		all[k].rest /= cmp.Or(looks, 1)
	}
	return all
}

// widths are the numbers of cpus on which runs are replayed: the more tasks run at a time, the fewer have ended when
// another one begins.
var widths = []int{4, 16, 64}

// A compared holds the errors of all rules for the runs of an application, on each of widths cpus.
type compared struct {
	application string
	misses      [][]miss // :: width → rule
}

// compareCorrections replays the runs of each application with estimates from its other runs, which each rule corrects
// by the tasks that have ended. An application whose runs have no kind of task in common is left out.
func compareCorrections(ctx context.Context, dir string) (all []compared, err error) {
	apps, err := byApplication(ctx, dir)
	for _, app := range apps {
		var runs []replayed
		for k := range app {
			r, err := replayedOf(app, k)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(r.estimates, func(x float64) bool { return x >= 0 }) {
				runs = append(runs, r)
			}
		}
		if len(runs) == 0 {
			continue
		}
		c := compared{application: app[0].application()}
		for _, cpus := range widths {
			c.misses = append(c.misses, missesOf(runs, cpus))
		}
		all = append(all, c)
	}
	return all, err
}

// meanOf returns the mean of the applications' errors.
func meanOf(all []compared) compared {
	mean := compared{application: fmt.Sprintf("mean of %d", len(all))}
	for w := range widths {
		misses := make([]miss, len(corrections))
		for _, c := range all {
			for k, m := range c.misses[w] {
				misses[k].tasks += m.tasks / float64(len(all))
				misses[k].rest += m.rest / float64(len(all))
			}
		}
		mean.misses = append(mean.misses, misses)
	}
	return mean
}

// corrections prints the errors of corrected estimates.
func (d desk) corrections(ctx context.Context) error {
	all, err := compareCorrections(ctx, d.instances)
	if err != nil {
		return err
	}
	d.say("## Corrections within a run\n")
	if len(all) == 0 {
		d.say("No application in %s has %d runs: set -instances to a directory with more.", d.instances, fewestRuns)
		return nil
	}
	t := results{{"application", "cpus", "rule", "error of tasks", "error of the work left"}}
	for _, c := range append(all, meanOf(all)) {
		for w, misses := range c.misses {
			for k, m := range misses {
				t.add("%s|%d|%s|%.1f %%|%.1f %%", c.application, widths[w], corrections[k].name, 100*m.tasks,
					100*m.rest)
			}
		}
	}
	return d.show("corrections", t)
}
