package provision

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// fewPilots is the minimum number of a site's pilots whose times are known before these times are used.
const fewPilots = 3

// latestPilots is the number of most recent pilots whose times are used; older ones are ignored, because packages and
// file systems change.
const latestPilots = 50

// overhead returns the time from the start of a pilot's job at the site to the arrival of its workers in the cluster:
// the time that the given share of earlier pilots did not exceed. If there were too few earlier pilots, the time is an
// assumption, and learned is 0.
func (f Facts) overhead(share float64) (d time.Duration, learned int) {
	d, learned = f.latest(share, func(w corral.Wait) (from, to time.Time) { return w.StartedAt, w.WorkersAt })
	if learned == 0 {
		d = f.Site.System().StartUp
	}
	return d, learned
}

// StartUp returns the time from the request of a pilot at a site until its workers are in the cluster: the median wait
// and the median start-up of its latest pilots, as far as they are known.
func StartUp(site corral.Site, latest []corral.Wait) time.Duration {
	f := Facts{Site: site, Waits: latest}
	wait, _ := f.latest(0.5, func(w corral.Wait) (from, to time.Time) { return w.SubmittedAt, w.StartedAt })
	ready, _ := f.overhead(0.5)
	return wait + ready
}

// leaving returns the time from the cancellation of a pilot at the site until the end of its job: the time that the
// given share of earlier pilots did not exceed. learned is 0 if there were too few. Drained pilots do not count: they
// first finish their tasks.
func (f Facts) leaving(share float64) (d time.Duration, learned int) {
	return f.latest(share, func(w corral.Wait) (from, to time.Time) {
		if w.Outcome == corral.OutcomeRemoved {
			return w.CancelledAt, w.EndedAt
		}
		return from, to
	})
}

// latest returns the quantile of an interval of the site's latest pilots, without those in which its beginning or end
// is not known, and their number, or 0 if there are too few.
func (f Facts) latest(share float64, interval func(corral.Wait) (from, to time.Time)) (time.Duration, int) {
	var took []time.Duration
	for _, w := range slices.Backward(f.Waits) {
		if len(took) == latestPilots {
			break
		}
		if from, to := interval(w); !w.StartedAt.IsZero() && !from.IsZero() && !to.IsZero() {
			took = append(took, max(0, to.Sub(from))) // the site's clock may be ahead
		}
	}
	if len(took) < fewPilots {
		return 0, 0
	}
	slices.Sort(took)
	return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond), len(took)
}

// Leaving returns a cluster's model in which a released pilot holds its hosts as long as the median of earlier pilots
// did at the slowest of the sites, and describes that basis. With a budget it is the time that corrald allows for when
// it keeps the budget: a plan that assumes less would be cut short.
func Leaving(c plan.Cluster, facts []Facts, budget bool) (plan.Cluster, []string) {
	var learned []string
	for _, f := range facts {
		if took := f.grace(); budget && took > c.Leave {
			c.Leave = took
			learned = []string{fmt.Sprintf("to keep the budget, a pilot at site %s is expected to hold its hosts %s "+
				"more after it is released", f.Site.Name, took)}
		}
		if took, n := f.leaving(0.5); took > c.Leave {
			c.Leave = took
			learned = []string{fmt.Sprintf("a pilot that is released holds its hosts %s more, as learned from %s at "+
				"site %s", took, counted(n, "pilot"), f.Site.Name)}
		}
	}
	return c, learned
}

// LearnedCluster returns a plan's model of a cluster based on the reports of its runs, latest last, and describes that
// basis. Values that the reports do not contain remain as assumed. The highest number of starts within a second is not
// a limit of the cluster, but shows that the cluster can start that many tasks.
func LearnedCluster(assumed plan.Cluster, reports []*corral.RunReport) (c plan.Cluster, learned []string) {
	c = assumed
	hops, turns := average{assumed: c.Hop}, average{assumed: c.Turn()}
	for _, r := range reports {
		if r == nil {
			continue
		}
		c.Rate = max(c.Rate, r.PeakRate)
		hops.add(r.Hop, r.Hops)
		turns.add(r.Reuse, r.Reuses)
	}
	if hops.tasks > 0 {
		c.Hop = hops.mean()
		learned = append(learned, fmt.Sprintf("from a task's end to the start of the next on a free worker the "+
			"cluster takes %s, as learned from %s", c.Hop, counted(hops.runs, "run")))
	}
	if turns.tasks > 0 {
		c.Reuse = max(time.Millisecond, turns.mean())
		learned = append(learned, fmt.Sprintf("from a task's end to the start of one that waited, in its place, it "+
			"takes %s, as learned from %s", c.Reuse, counted(turns.runs, "run")))
	}
	return c, learned
}

// Join adds to the overhead of sites the time that a cluster needs to assign the first task to a new worker, which is
// the same as for any free worker that did not just finish a task.
func Join(sites []plan.Site, c plan.Cluster) {
	for i := range sites {
		sites[i].Overhead += c.Hop - c.Turn()
	}
}

// An average is the mean of an earlier assumption and of times that runs report.
type average struct {
	assumed     time.Duration
	sum         corral.Seconds
	tasks, runs int
}

// believed is the number of tasks for which the assumption counts, because the few hops of a single run may have been
// measured while the cluster was unusually fast or slow.
const believed = 10

// mostHops limits the weight of a run, so that a single large run does not outweigh all others.
const mostHops = 1000

func (p *average) add(took corral.Seconds, tasks int) {
	if tasks = min(tasks, mostHops); tasks > 0 {
		p.sum, p.tasks, p.runs = p.sum+took*corral.Seconds(tasks), p.tasks+tasks, p.runs+1
	}
}

func (p *average) mean() time.Duration {
	before := believed
	if p.assumed == 0 {
		before = 0 // there was no assumption
	}
	sum := p.sum + corral.Seconds(p.assumed)*corral.Seconds(before)
	return time.Duration(sum / corral.Seconds(p.tasks+before)).Round(time.Millisecond)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
