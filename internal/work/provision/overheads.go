package provision

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// fewStarts is the number of a site's pilots that must have brought workers before their start-up times are used.
const fewStarts = 3

// latestStarts is the number of latest ones that count: packages and file systems change.
const latestStarts = 50

// overhead returns how long a pilot of the site takes from its job's start to its workers in the cluster: the time
// that a share of the earlier ones did not exceed. If there were too few, it is assumed, and learned is 0.
func (f Facts) overhead(share float64) (d time.Duration, learned int) {
	var took []time.Duration
	for _, w := range slices.Backward(f.Waits) {
		if len(took) == latestStarts {
			break
		}
		if !w.StartedAt.IsZero() && !w.WorkersAt.IsZero() {
			took = append(took, max(0, w.WorkersAt.Sub(w.StartedAt))) // the site's clock may be ahead
		}
	}
	if len(took) < fewStarts {
		return f.Site.System().StartUp, 0
	}
	slices.Sort(took)
	return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond), len(took)
}

// LearnedCluster returns a plan's model of a cluster based on the reports of runs there, latest last, and describes
// that basis. Values that the reports do not contain remain as assumed. The highest number of starts within a second
// is not a limit of the cluster, but shows that it can do this many.
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

// Join adds to the overhead of sites the time that a cluster takes to give a new worker its first task, which is the
// same as for any free worker that did not just finish a task.
func Join(sites []plan.Site, c plan.Cluster) {
	for i := range sites {
		sites[i].Overhead += c.Hop - c.Turn()
	}
}

// An average is the mean of times that runs report and of an earlier assumption.
type average struct {
	assumed     time.Duration
	sum         corral.Seconds
	tasks, runs int
}

// believed is the number of tasks for which the assumption counts: the few hops of a single run may have met a moment
// when the cluster was quick, or slow.
const believed = 10

// mostHops keeps one large run from outweighing all others.
const mostHops = 1000

func (p *average) add(took corral.Seconds, tasks int) {
	if tasks = min(tasks, mostHops); tasks > 0 {
		p.sum, p.tasks, p.runs = p.sum+took*corral.Seconds(tasks), p.tasks+tasks, p.runs+1
	}
}

func (p *average) mean() time.Duration {
	before := believed
	if p.assumed == 0 {
		before = 0 // nothing was assumed
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
