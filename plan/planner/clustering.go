package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// clusterings are the ways to make jobs of the tasks that are tried: the one that was asked for, else those that are
// worth it.
func clusterings(p *planning, asked *clustering.Rule) []clustering.Rule {
	if asked != nil && asked.Kind != clustering.Auto {
		return []clustering.Rule{*asked}
	}
	if slices.ContainsFunc(p.Present, func(q plan.Present) bool { return len(q.Running) > 0 }) {
		return []clustering.Rule{{}} // what runs is in jobs already
	}
	return clustering.Candidates(p.Work.Graph, p.Work.Clusterable(), wayOfJob(p))
}

// wayOfJob is what each job takes beside its tasks and their bytes: the way to a worker, and at the site where that is
// least the latency of its files.
func wayOfJob(p *planning) time.Duration {
	least := time.Duration(math.MaxInt64)
	for i := range p.Sites {
		least = min(least, p.Sites[i].Transfer.Latency)
	}
	return p.Cluster.Turn() + least
}

// clustered returns the planning of a workflow whose tasks are jobs of several tasks each. A job takes as long as its
// tasks one after another, and only one hop and one latency of its files.
func clustered(p *planning, c clustering.Rule) *planning {
	jobs := p.Work.Jobs(c)
	if jobs == nil {
		return p
	}
	q := *p
	q.clustering, q.jobs = c, jobs
	q.Work = p.Work.InJobs(q.jobs)
	hasten(&q)
	return &q
}

// tooLong says why no pilot could run the jobs of a clustering that was asked for, and names the nearest that can be
// run; it returns nothing where all jobs fit, or not even each task does.
func tooLong(p *planning, asked *clustering.Rule) string {
	if asked == nil || asked.Kind == clustering.Auto || fit(p, *asked) || impossible(p.Problem) != "" {
		return ""
	}
	var most time.Duration
	for _, s := range p.Sites {
		most = max(most, longest(&s, p.Cluster.Leave))
	}
	jobs := p.Work.Jobs(*asked)
	j, longest := 0, time.Duration(0)
	for k, t := range p.Work.InJobs(jobs).Tasks {
		if t.Runtime > longest {
			j, longest = k, t.Runtime
		}
	}
	return fmt.Sprintf("with --clustering %s a job of %d tasks takes %s, and no pilot has more than %s for it; "+
		"--clustering %s is within reach", asked, len(jobs[j]), round(longest), round(most), nearest(p, *asked, most))
}

// fit reports whether some pilot could run each of the jobs of a clustering.
func fit(p *planning, c clustering.Rule) bool {
	q := p.Problem
	if jobs := q.Work.Jobs(c); jobs != nil {
		q.Work = q.Work.InJobs(jobs)
	}
	return impossible(q) == ""
}

// nearest is the clustering of a kind whose jobs are the longest that fit, most being what a pilot has for one; where a
// kind leaves no choice, it is none.
func nearest(p *planning, c clustering.Rule, most time.Duration) clustering.Rule {
	of := func(n int) clustering.Rule { return clustering.Levels(n) }
	few, enough := c.Groups, len(p.Work.Tasks)
	switch c.Kind {
	case clustering.Horizontal:
	case clustering.ByRuntime: // in thousandths of what a pilot has
		few, enough = 0, 1000
		of = func(n int) clustering.Rule {
			d := (most * time.Duration(1000-n) / 1000).Truncate(time.Second)
			return clustering.Lasting(max(d, time.Millisecond))
		}
	default:
		return clustering.Rule{}
	}
	for enough-few > 1 {
		if middle := (few + enough) / 2; fit(p, of(middle)) {
			enough = middle
		} else {
			few = middle
		}
	}
	return of(enough)
}

// whyClustered says what the chosen clustering saves, beside the soonest and cheapest without one.
func (o outcome) whyClustered(all []outcome) []string {
	if o.of.clustering == (clustering.Rule{}) {
		return nil
	}
	alone := slices.DeleteFunc(slices.Clone(all), func(a outcome) bool {
		return a.of.clustering != (clustering.Rule{}) || a.limit != ""
	})
	said := fmt.Sprintf("%d jobs of several tasks each (%s), because each job's way to a worker takes %s",
		len(o.of.jobs), o.of.clustering, wayOfJob(o.of))
	if len(alone) == 0 {
		return []string{said}
	}
	other := slices.MinFunc(alone, order(o.of.Goal, alone))
	return []string{fmt.Sprintf("%s: one by one they would take %s and %s", said,
		round(time.Duration(other.Makespan)), plan.CoreTime(other.CoreHours))}
}
