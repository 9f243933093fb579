package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queuemodel"
	"github.com/corral-pilot/corral/workflow/profile"
)

// RankBy is the criterion of a ranking.
type RankBy string

// The criteria.
const (
	ByTime RankBy = "time" // the wait plus the time that the workflow takes
	ByCost RankBy = "cost" // the amount billed, then the time
)

// A RankRequest describes the work and the criterion.
type RankRequest struct {
	Work plan.Work
	CPUs int // cpus used at once
	By   RankBy
}

// A RankedSite is a site to rank, with the observed waits and the speed of its hosts.
type RankedSite struct {
	corral.Site
	Waits []corral.Wait
	Line  *queuemodel.Model // the queue now; nil: not known
	Speed profile.Speed     // relative to the other sites; a Factor of 0 means unknown and counts as 1
}

// A Rank is the result of the ranking for one site.
type Rank struct {
	Site   string            `json:"site"`
	Viable bool              `json:"viable"`
	Lacks  string            `json:"lacks,omitempty"` // the first requirement that the site does not meet
	Queue  string            `json:"queue,omitempty"`
	Items  []Item            `json:"items,omitempty"` // the workflow's times at the site, in seconds
	Takes  corral.Seconds    `json:"takes_s"`         // sum of the times
	Speed  float64           `json:"speed,omitempty"` // divisor of runtimes; absent: unknown
	Kinds  int               `json:"kinds,omitempty"` // kinds of tasks from which Speed was learned
	Wait   queueing.Expected `json:"wait"`
	Cost   *cost.Amount      `json:"cost,omitempty"` // absent if the price is per host, whose size is unknown

	hosts    int
	walltime time.Duration // walltime of pilots: the workflow's time, at most the queue's limit
}

// An Item is the time of one kind of work at a site.
type Item struct {
	Type   string  `json:"type"`
	Amount float64 `json:"amount"`
	Rate   float64 `json:"rate"` // amount per second
	Cost   float64 `json:"cost"` // amount ÷ rate
}

// SourceLine is the source of a wait that follows from the present state of the queue.
const SourceLine = "the queue now"

// RankSites ranks sites, the best first; sites that are not viable are last, sorted by name. The wait is when the pilot
// would start in the queue as it is now or, if that is not known, the mean of the observed waits. For a site without
// these, the wait is assumed to be as long as the longest wait of the other sites. Errors are of kind Invalid.
func RankSites(in RankRequest, sites []RankedSite, now time.Time) ([]Rank, error) {
	if in.CPUs < 1 {
		return nil, corral.ErrorAt(corral.Invalid, "--cpus", "%d is not a positive number", in.CPUs)
	}
	if most := in.requires().node.CPUs; in.CPUs < most {
		return nil, corral.ErrorAt(corral.Invalid, "--cpus", "a task needs %d cpus, more than %d", most, in.CPUs)
	}
	if in.By != ByTime && in.By != ByCost {
		return nil, corral.ErrorAt(corral.Invalid, "--by", "%.40q is neither %s nor %s", in.By, ByTime, ByCost)
	}
	ranks := []Rank{}
	for _, s := range sites {
		r, err := in.at(s)
		if err != nil {
			return nil, err
		}
		pilot := queueing.Shape{Queue: r.Queue, CPUs: in.CPUs, Walltime: r.walltime}
		switch r.Wait = queueing.Expect(s.Waits, pilot, now, 0); {
		case s.System().Queueless:
			r.Wait = queueing.Expected{Source: "no queue"}
		case s.Line != nil && r.Viable:
			in.inLine(s.Line, &r)
		}
		ranks = append(ranks, r)
	}
	var slowest corral.Seconds
	for _, r := range ranks {
		if r.Viable {
			slowest = max(slowest, r.Wait.Wait)
		}
	}
	for i := range ranks {
		if ranks[i].Wait.Source == queueing.SourceGuess {
			ranks[i].Wait.Wait = slowest
		}
	}
	if err := in.comparable(ranks); err != nil {
		return nil, err
	}
	return in.ordered(ranks), nil
}

// inLine sets the wait of a rank by the present state of the queue. A site where the pilot never starts is not viable.
func (in RankRequest) inLine(line *queuemodel.Model, r *Rank) {
	hosts := max(1, r.hosts)
	at, ok := line.Start(0, queuemodel.Request{Hosts: hosts, CPUs: (in.CPUs + hosts - 1) / hosts, Walltime: r.walltime})
	if !ok {
		r.Viable, r.Lacks = false, fmt.Sprintf("the queue: it never has %d cpus for a pilot", in.CPUs)
		return
	}
	r.Wait = queueing.Expected{Wait: corral.Seconds(at.Round(time.Second)), Source: SourceLine}
}

// comparable returns an error if the ranking is by cost, but costs are unknown or in different units.
func (in RankRequest) comparable(ranks []Rank) error {
	var first *Rank
	for i := range ranks {
		r := &ranks[i]
		switch {
		case in.By != ByCost || !r.Viable:
		case r.Cost == nil:
			return corral.ErrorAt(corral.Invalid, "--by",
				"the cost at %s is unknown: probe it, or leave it out with --site", r.Site)
		case first == nil:
			first = r
		case r.Cost.Unit != first.Cost.Unit:
			return corral.ErrorAt(corral.Invalid, "--by", "%s costs %s and %s %s, which cannot be compared: name "+
				"sites of one unit by --site", first.Site, first.Cost.Unit, r.Site, r.Cost.Unit)
		}
	}
	return nil
}

// ordered sorts the ranks, the best first.
func (in RankRequest) ordered(ranks []Rank) []Rank {
	slices.SortStableFunc(ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(in.dearness(a), in.dearness(b)), cmp.Compare(a.Site, b.Site))
	})
	return ranks
}

// dearness returns a number that is lower the sooner the workflow is done, or the less it costs, or +∞ for a site that
// is not viable.
func (in RankRequest) dearness(r Rank) float64 {
	if !r.Viable {
		return math.Inf(1)
	}
	seconds := float64(r.Wait.Wait+r.Takes) / float64(time.Second)
	if in.By == ByCost {
		return r.Cost.Money.Units() + 1e-12*seconds
	}
	return seconds
}

// at returns the rank of one site for the workflow, without the wait.
func (in RankRequest) at(s RankedSite) (r Rank, err error) {
	r.Site = s.Name
	r.Speed, r.Kinds = s.Speed.Factor, s.Speed.Shared
	task, speed := in.requires(), cmp.Or(s.Speed.Factor, 1)
	queue, lacks := in.queue(s.Site, task.node)
	if r.Queue = queue.Name; lacks != "" {
		r.Lacks = lacks
		return r, nil
	}
	takes := 0.0
	if task.work > 0 {
		rate := speed * min(float64(in.CPUs), task.width)
		takes = task.work / rate
		r.Items = []Item{{"cpu-seconds", task.work, rate, takes}}
	}
	r.walltime = time.Duration(queue.MaxWalltime)
	r.Takes = corral.Seconds(time.Duration(takes * float64(time.Second)).Round(time.Millisecond))
	if takes := time.Duration(r.Takes); r.walltime == 0 || takes < r.walltime {
		r.walltime = takes
	}
	longest := time.Duration(float64(task.longest) / speed).Round(time.Millisecond)
	if queue.MaxWalltime > 0 && longest > time.Duration(queue.MaxWalltime) {
		r.Lacks = fmt.Sprintf("walltime: a task takes %s, and queue %s ends jobs after %s", longest, queue.Name,
			time.Duration(queue.MaxWalltime))
		return r, nil
	}
	tariff, err := cost.ParseTariff(s.Terms().Price, s.Billing)
	if err != nil {
		return r, err
	}
	r.Viable = true
	if queue.CPUs > 0 {
		r.hosts = (in.CPUs + queue.CPUs - 1) / queue.CPUs
	}
	if tariff.Rate.Per != cost.CPUHour && queue.CPUs == 0 {
		return r, nil
	}
	hosts := max(1, r.hosts)
	if queue.CPUs == 0 {
		hosts = in.CPUs
	}
	held := cost.Holding{Hosts: hosts, CPUs: in.CPUs, Held: time.Duration(r.Takes),
		MemoryMiB: max(hosts*task.node.MemoryMiB, queue.MemoryMiB*in.CPUs/max(1, queue.CPUs))}
	if task.node.GPUs > 0 { // as many as a plan requests with these cpus
		held.GPUs = max(hosts*task.node.GPUs, queue.GPUs*in.CPUs/max(1, queue.CPUs))
	}
	_, billed := tariff.Rate.Charge(held, tariff.Billing)
	r.Cost = &cost.Amount{Money: billed, Unit: tariff.Rate.Unit}
	return r, nil
}

// A load holds the requirements of a workflow.
type load struct {
	node    corral.Resources // needs of one node: the maximum of each resource over all tasks
	work    float64          // cpu-seconds
	width   float64          // mean number of usable cpus: work divided by the critical path
	longest time.Duration    // runtime of the longest task
}

// requires returns the load of the workflow. Its width is only a mean, whereas a plan considers the levels.
func (in RankRequest) requires() (l load) {
	for _, t := range in.Work.Tasks {
		l.node.CPUs = max(l.node.CPUs, t.Needs.CPUs, 1)
		l.node.MemoryMiB, l.node.GPUs = max(l.node.MemoryMiB, t.Needs.MemoryMiB), max(l.node.GPUs, t.Needs.GPUs)
		l.work += float64(max(1, t.Needs.CPUs)) * t.Runtime.Seconds()
		l.longest = max(l.longest, t.Runtime)
	}
	l.width = max(1, l.work/max(1e-3, in.Work.Graph.CriticalPath(in.Work.Runtimes()).Seconds()))
	return l
}

// queue returns the site's own queue or its default queue, and the reason why this queue cannot provide a pilot for the
// workflow; the reason is empty if it can, as far as is known.
func (in RankRequest) queue(s corral.Site, node corral.Resources) (q corral.SiteQueue, lacks string) {
	switch {
	case s.State != corral.SiteReady:
		return q, fmt.Sprintf("the site: it is %s", s.State)
	case s.Trouble.Why != "":
		return q, "the site: " + s.Lack().Why
	case s.Facts == nil || len(s.Facts.Queues) == 0:
		return corral.SiteQueue{Name: s.Queue}, ""
	}
	q, known := s.Facts.In(s.Queue)
	if !known {
		return q, fmt.Sprintf("the queue: there is no %q", s.Queue)
	}
	if q.Closed != "" {
		return q, "the queue: " + q.Closed
	}
	for _, limit := range []struct {
		what        string
		needs, most int
	}{
		{"cpus: a task needs %d, and the largest node has %d", node.CPUs, q.CPUs},
		{"memory: a task needs %d MiB, and the largest node has %d", node.MemoryMiB, q.MemoryMiB},
		{"cpus: %d are requested, and the queue has %d", in.CPUs, q.CPUs * q.Nodes},
	} {
		if limit.most > 0 && limit.needs > limit.most {
			return q, fmt.Sprintf(limit.what, limit.needs, limit.most)
		}
	}
	if node.GPUs > q.GPUs {
		return q, fmt.Sprintf("gpus: a task needs %d, and the largest node has %d", node.GPUs, q.GPUs)
	}
	return q, ""
}
