package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/cost"
)

// Evidence is what speaks for a plan beyond its estimates: what simulations of it say, and what they rest on.
type Evidence struct {
	Confidence *Confidence `json:"confidence,omitempty"` // only if one was asked for, with a deadline
	Comparison []Rival     `json:"comparison,omitempty"` // only if it was asked for; the plan itself is the first
	Assumed    *Assumed    `json:"assumed,omitempty"`    // nil: it was not written down
}

// A Confidence says in which share of simulated outcomes the deadline is met.
type Confidence struct {
	Asked       float64  `json:"asked"`
	Reached     float64  `json:"reached"`
	NextCheaper *float64 `json:"next_cheaper_reaches"` // the candidate next to it that costs less; nil: none does
}

// A Rival is a policy that asks for pilots, and what it comes to in the outcomes that the plan was played in: medians.
type Rival struct {
	Policy     string         `json:"policy"`
	Parameters string         `json:"parameters,omitempty"` // empty: its defaults
	Makespan   corral.Seconds `json:"makespan_s"`
	CoreHours  float64        `json:"core_hours"`
	Waste      float64        `json:"waste"`
	Requests   int            `json:"requests"` // jobs submitted to sites
	Finished   float64        `json:"finished"` // share of outcomes in which the workflow was completed
}

// Assumed is what a plan's outcomes are drawn from, so that it can be played without the corrald that made it.
type Assumed struct {
	Hop    corral.Seconds `json:"hop_s"`
	Reuse  corral.Seconds `json:"reuse_s,omitempty"`
	Rate   float64        `json:"tasks_per_s,omitempty"`
	Spread string         `json:"error"` // of runtimes about their estimates, as --error takes it
	Queues []Queue        `json:"queues"`
}

// A Queue is what was assumed of one queue of a site, as far as the plan's pilots use it.
type Queue struct {
	Site      string         `json:"site"`
	Queue     string         `json:"queue,omitempty"`
	Overhead  corral.Seconds `json:"overhead_s"`
	CPUs      int            `json:"cpus,omitempty"` // held at once at most; 0: no limit is known
	MemoryMiB int            `json:"memory_mib,omitempty"`
	Speed     Speed          `json:"speed,omitempty"` // by which the tasks' runtimes are divided; 0: 1
	Price     cost.Money     `json:"price"`
	Unit      cost.Unit      `json:"unit"`
	Per       cost.Per       `json:"per"`
	Minimum   corral.Seconds `json:"billed_minimum_s,omitempty"`
	Period    corral.Seconds `json:"billed_period_s,omitempty"`
	Waits     []ShapeWaits   `json:"waits"` // the first whose cpus are no fewer counts, else the last
}

// ShapeWaits is how long pilots of so many cpus, or of fewer, wait: the shortest wait, the longest, and between them
// quantiles at equal distances.
type ShapeWaits struct {
	CPUs  int    `json:"cpus"`
	Waits Spread `json:"waits_s"`
}

// A Spread is a distribution of times by its quantiles: the least, the largest, and between them others at equal
// distances. One time alone is always it.
type Spread []corral.Seconds

// parts is into how many parts NewSpread divides a distribution: forty of 2.5 % each.
const parts = 40

// NewSpread asks for quantiles and keeps them.
func NewSpread(quantile func(share float64) time.Duration) Spread {
	all := make(Spread, parts+1)
	for i := range all {
		all[i] = corral.Seconds(quantile(float64(i) / parts))
	}
	if all[0] == all[parts] {
		return all[:1]
	}
	return all
}

// At returns the time that a share does not exceed; between two quantiles it changes evenly. The empty Spread is 0.
func (s Spread) At(share float64) time.Duration {
	switch len(s) {
	case 0:
		return 0
	case 1:
		return time.Duration(s[0])
	}
	at := min(1, max(0, share)) * float64(len(s)-1)
	k := min(int(at), len(s)-2)
	part := float64(s[k+1]-s[k]) * (at - float64(k))
	return (time.Duration(s[k]) + time.Duration(part)).Round(time.Millisecond)
}

// Assume writes down what a problem says of the queues that a plan uses, and how runtimes are spread.
func Assume(p Problem, pl *Plan, spread string) *Assumed {
	a := &Assumed{Hop: corral.Seconds(p.Cluster.Hop), Reuse: corral.Seconds(p.Cluster.Reuse), Rate: p.Cluster.Rate,
		Spread: spread, Queues: []Queue{}}
	for i := range p.Sites {
		s := &p.Sites[i]
		shapes := used(s, pl)
		if len(shapes) == 0 {
			continue
		}
		r, b := s.Tariff.Rate, s.Tariff.Billing
		q := Queue{Site: s.Name, Queue: s.Queue, Overhead: corral.Seconds(s.Overhead), CPUs: known(s.CPUs),
			MemoryMiB: known(s.Host.MemoryMiB), Speed: s.Speed, Price: r.Price, Unit: r.Unit, Per: r.Per,
			Minimum: corral.Seconds(b.Minimum), Period: corral.Seconds(b.Period)}
		for _, shape := range shapes {
			w := ShapeWaits{CPUs: shape.Hosts * shape.Host.CPUs, Waits: NewSpread(func(share float64) time.Duration {
				return s.Quantile(shape, share)
			})}
			if n := len(q.Waits); n > 0 && slices.Equal(q.Waits[n-1].Waits, w.Waits) {
				q.Waits[n-1].CPUs = w.CPUs
				continue
			}
			q.Waits = append(q.Waits, w)
		}
		a.Queues = append(a.Queues, q)
	}
	return a
}

// known turns what is unlimited because nobody knows it into what JSON leaves out.
func known(n int) int {
	if n >= Unlimited {
		return 0
	}
	return n
}

// used returns the shapes of a plan's pilots at a site, one for each number of cpus, in the order of these.
func used(s *Site, pl *Plan) (shapes []Shape) {
	size := func(x Shape) int { return x.Hosts * x.Host.CPUs }
	for _, q := range pl.Pilots {
		if q.Site == s.Name && q.Queue == s.Queue {
			shapes = append(shapes, Shape{Hosts: q.Hosts, Host: q.Host(), Walltime: time.Duration(q.Walltime)})
		}
	}
	slices.SortStableFunc(shapes, func(a, b Shape) int { return cmp.Compare(size(a), size(b)) })
	return slices.CompactFunc(shapes, func(a, b Shape) bool { return size(a) == size(b) })
}

// Cluster is what was assumed of the cluster.
func (a Assumed) Cluster() Cluster {
	return Cluster{Rate: a.Rate, Hop: time.Duration(a.Hop), Reuse: time.Duration(a.Reuse)}
}

// Runtime returns the Runtime of a task that is placed so: what it would take on the fastest hosts.
func (p *Plan) Runtime(at Placement) time.Duration {
	placed := time.Duration(at.End - at.Start)
	if p.Assumed == nil || at.Pilot >= len(p.Pilots) {
		return placed
	}
	pilot := p.Pilots[at.Pilot]
	for _, q := range p.Assumed.Queues {
		if q.Site == pilot.Site && q.Queue == pilot.Queue && q.Speed != 0 {
			return time.Duration(float64(placed) * float64(q.Speed)).Round(time.Millisecond)
		}
	}
	return placed
}

// Problem returns the problem that outcomes of a plan are drawn from. Of limits it has the cpus of each queue.
func (a Assumed) Problem(w Work) Problem {
	p := Problem{Work: w, Cluster: a.Cluster()}
	for _, q := range a.Queues {
		s := Site{
			Name: q.Site, Queue: q.Queue,
			Host: corral.Resources{CPUs: Unlimited, MemoryMiB: cmp.Or(q.MemoryMiB, Unlimited), GPUs: Unlimited,
				DiskMiB: Unlimited},
			Hosts: Unlimited, Pilots: Unlimited, CPUs: cmp.Or(q.CPUs, Unlimited), Walltime: Unbounded,
			Overhead: time.Duration(q.Overhead), Speed: q.Speed,
			Tariff: Tariff{Rate: cost.Rate{Price: q.Price, Unit: q.Unit, Per: q.Per},
				Billing: cost.Billing{Minimum: time.Duration(q.Minimum), Period: time.Duration(q.Period)}},
			Waits: q.quantile,
		}
		s.Wait = func(shape Shape) time.Duration { return q.quantile(shape, 0.5) }
		p.Sites = append(p.Sites, s)
	}
	return p
}

// quantile is Waits as they were written down.
func (q Queue) quantile(shape Shape, share float64) time.Duration {
	if len(q.Waits) == 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(q.Waits, shape.Hosts*shape.Host.CPUs, func(w ShapeWaits, cpus int) int {
		return cmp.Compare(w.CPUs, cpus)
	})
	return q.Waits[min(i, len(q.Waits)-1)].Waits.At(share)
}
