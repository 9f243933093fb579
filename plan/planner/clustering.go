package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// clusterings returns the clustering rules to try: the requested rule or, without a request, the rules that promise a
// gain.
func clusterings(p *planning, asked *clustering.Rule) []clustering.Rule {
	if asked != nil && asked.Kind != clustering.Auto {
		return []clustering.Rule{*asked}
	}
	if slices.ContainsFunc(p.Present, func(q plan.Present) bool { return len(q.Running) > 0 }) {
		return []clustering.Rule{{}} // running tasks are in jobs already
	}
	return clustering.Candidates(p.Work.Graph, p.Work.Clusterable(), wayOfJob(p))
}

// wayOfJob returns the overhead of a job, which depends neither on its tasks nor on their bytes: the time until a
// worker starts it, plus the lowest latency of a file transfer to any site.
func wayOfJob(p *planning) time.Duration {
	least := time.Duration(math.MaxInt64)
	for i := range p.Sites {
		least = min(least, p.Sites[i].Transfer.Latency)
	}
	return p.Cluster.Turn() + least
}

// clustered returns the planning of a workflow whose tasks are grouped into jobs. A job takes as long as its tasks in
// sequence, with a single hop and a single transfer latency.
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

// tooLong explains why no pilot can run the jobs of a requested clustering, and names the closest feasible one. It
// returns "" if all jobs fit, or if a single task on its own does not fit.
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
	return fmt.Sprintf("with --clustering %s a job of %d tasks takes %s, but no pilot has more than %s for it; "+
		"--clustering %s is within reach", asked, len(jobs[j]), round(longest), round(most), nearest(p, *asked, most))
}

// fit reports whether each job of a clustering fits some pilot.
func fit(p *planning, c clustering.Rule) bool {
	q := p.Problem
	if jobs := q.Work.Jobs(c); jobs != nil {
		q.Work = q.Work.InJobs(jobs)
	}
	return impossible(q) == ""
}

// nearest returns the clustering of the same kind with the longest jobs that fit; most is the time that a pilot can
// spend on one job. For kinds without a parameter it returns the zero rule, which makes each task a job.
func nearest(p *planning, c clustering.Rule, most time.Duration) clustering.Rule {
	of := func(n int) clustering.Rule { return clustering.Levels(n) }
	few, enough := c.Groups, len(p.Work.Tasks)
	switch c.Kind {
	case clustering.Horizontal:
	case clustering.ByRuntime: // in thousandths of most
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

// whyClustered explains the gain of the chosen clustering over the best outcome without one.
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
	anyway := o.of.Goal
	anyway.Deadline, anyway.Budget = 0, nil
	other := alone[ranked(anyway, alone)[0]]
	return []string{fmt.Sprintf("%s: as separate jobs they would take %s and %s", said,
		round(time.Duration(other.Makespan)), plan.CoreTime(other.CoreHours))}
}
