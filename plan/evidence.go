package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// Evidence is what speaks for a plan beyond its estimates: what simulations of it say, and what they rest on.
type Evidence struct {
	Algorithm  Algorithm   `json:"algorithm,omitempty"`  // by which it was sought; empty, in older plans: staircase
	Confidence *Confidence `json:"confidence,omitempty"` // only if one was asked for, with a deadline
	Comparison []Rival     `json:"comparison,omitempty"` // only if it was asked for; the plan itself is the first
	Contest    []Entrant   `json:"contest,omitempty"`    // only of Auto: what each algorithm's plan came to
	Assumed    *Assumed    `json:"assumed,omitempty"`    // nil: it was not written down
	Asked      Asked       `json:"asked,omitzero"`
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

// An Entrant is an algorithm whose plan was played, and what it came to in outcomes that were the same for all.
type Entrant struct {
	Algorithm Algorithm      `json:"algorithm"`
	Makespan  corral.Seconds `json:"makespan_s,omitempty"` // the median of outcomes in which all was done; 0: of none
	Cost      cost.Amount    `json:"cost,omitzero"`        // the mean
	PeakCPUs  int            `json:"peak_cpus,omitempty"`  // held at once, as planned
	Missed    float64        `json:"missed"`               // share of outcomes that were late, too dear, or not done
	Weight    float64        `json:"weight,omitempty"`     // by the trade-off, if that decides: the first plan has 1
	Won       bool           `json:"won,omitempty"`
	Why       string         `json:"why_not,omitempty"` // it made no plan
}

// Assumed is what a plan was made with, so that it can be played, and checked, without the corrald that made it.
type Assumed struct {
	// Of sites that pilots might be asked for at, and of those of present pilots, where it is not 1.
	Speeds map[string]Speed `json:"speeds,omitempty"`

	Hop     corral.Seconds `json:"hop_s"`
	Reuse   corral.Seconds `json:"reuse_s,omitempty"`
	Leave   corral.Seconds `json:"leave_s,omitempty"` // for which a pilot is held after its last task
	Rate    float64        `json:"tasks_per_s,omitempty"`
	Spread  string         `json:"error"` // of runtimes about their estimates, as --error takes it
	Queues  []Queue        `json:"queues"`
	Present []There        `json:"present,omitempty"` // pilots that are used before others are asked for
	Run     corral.RunID   `json:"run_id,omitempty"`  // of which what was left is planned; 0: a whole workflow is

	Transfers []SiteTransfer `json:"transfers,omitempty"` // of sites to which files travel, used or not
}

// A SiteTransfer is what was assumed of the way of files to a site and back.
type SiteTransfer struct {
	Site      string         `json:"site"`
	Latency   corral.Seconds `json:"latency_s"`
	Bandwidth float64        `json:"bytes_per_s,omitempty"` // absent: bytes take no time
}

// A Queue is what was assumed of one queue of a site, as far as the plan's pilots use it.
type Queue struct {
	Site     string         `json:"site"`
	Queue    string         `json:"queue,omitempty"`
	Overhead corral.Seconds `json:"overhead_s"`
	Speed    Speed          `json:"speed,omitempty"` // by which the tasks' runtimes are divided; 0: 1
	Limits
	Price   cost.Money     `json:"price"`
	Unit    cost.Unit      `json:"unit"`
	Per     cost.Per       `json:"per"`
	Minimum corral.Seconds `json:"billed_minimum_s,omitempty"`
	Period  corral.Seconds `json:"billed_period_s,omitempty"`
	Left    *cost.Money    `json:"left,omitempty"` // of the account's allocation
	Waits   []ShapeWaits   `json:"waits"`          // the first whose cpus are no fewer counts, else the last
	Room    []Step         `json:"room,omitempty"` // where pilots wait no longer than until they fit; none: not known
}

// Limits are what a queue gives at most; what is 0 has no limit that is known, but for GPUs.
type Limits struct {
	CPUs      int            `json:"cpus,omitempty"`   // held at once
	Pilots    int            `json:"pilots,omitempty"` // that wait or run at once
	Hosts     int            `json:"hosts,omitempty"`  // of a pilot
	HostCPUs  int            `json:"host_cpus,omitempty"`
	MemoryMiB int            `json:"memory_mib,omitempty"` // of a host
	GPUs      int            `json:"gpus,omitempty"`       // of a host
	Walltime  corral.Seconds `json:"walltime_s,omitempty"`
	Margin    corral.Seconds `json:"margin_s,omitempty"` // before the end of a walltime, in which nothing is begun
	Closed    []Closure      `json:"closed,omitempty"`
}

// A Closure is a time in which a queue has no pilots.
type Closure struct {
	From corral.Seconds `json:"from_s"`
	To   corral.Seconds `json:"to_s"`
}

// ShapeWaits is how long pilots of so many cpus, or of fewer, wait: the shortest wait, the longest, and between them
// quantiles at equal distances.
type ShapeWaits struct {
	CPUs    int            `json:"cpus"`
	Planned corral.Seconds `json:"planned_s"` // what the plan counts on
	Waits   Spread         `json:"waits_s"`
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
	if !slices.ContainsFunc(all, func(d corral.Seconds) bool { return d != all[0] }) {
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

// Assume writes down what a problem says of the queues that a plan uses and of the pilots that are there, and how
// runtimes are spread.
func Assume(p Problem, pl *Plan, spread string) *Assumed {
	a := &Assumed{Hop: corral.Seconds(p.Cluster.Hop), Reuse: corral.Seconds(p.Cluster.Reuse),
		Leave: corral.Seconds(p.Cluster.Leave), Rate: p.Cluster.Rate, Spread: spread, Speeds: speedsOf(p),
		Queues: []Queue{}}
	for i := range p.Sites {
		s := &p.Sites[i]
		a.assume(s.Name, s.Transfer)
		if shapes := used(s, pl); len(shapes) > 0 {
			q := queueOf(s, shapes)
			q.Room = roomOf(s, pl)
			a.Queues = append(a.Queues, q)
		}
	}
	for _, q := range p.Present {
		a.Present = append(a.Present, thereOf(q, p.Work))
		a.assume(q.Site, q.Transfer)
	}
	return a
}

// assume writes down what is known of the way of files to a site, once.
func (a *Assumed) assume(site string, t Transfer) {
	if t != (Transfer{}) && a.Transfer(site) == (Transfer{}) {
		a.Transfers = append(a.Transfers, SiteTransfer{site, corral.Seconds(t.Latency), t.Bandwidth})
	}
}

// Transfer is what was assumed of the way of files to a site.
func (a *Assumed) Transfer(site string) Transfer {
	for _, t := range a.Transfers {
		if t.Site == site {
			return Transfer{time.Duration(t.Latency), t.Bandwidth}
		}
	}
	return Transfer{}
}

// queueOf writes down what is known of a queue, for pilots of some shapes.
func queueOf(s *Site, shapes []Shape) Queue {
	r, b := s.Tariff.Rate, s.Tariff.Billing
	q := Queue{Site: s.Name, Queue: s.Queue, Overhead: corral.Seconds(s.Overhead), Speed: s.Speed, Limits: limitsOf(s),
		Price: r.Price,
		Unit:  r.Unit, Per: r.Per, Minimum: corral.Seconds(b.Minimum), Period: corral.Seconds(b.Period), Left: s.Left}
	for _, shape := range shapes {
		w := ShapeWaits{CPUs: shape.Hosts * shape.Host.CPUs, Planned: corral.Seconds(s.Wait(shape)),
			Waits: NewSpread(func(share float64) time.Duration { return s.Quantile(shape, share) })}
		n := len(q.Waits)
		if n > 0 && q.Waits[n-1].Planned == w.Planned && slices.Equal(q.Waits[n-1].Waits, w.Waits) {
			q.Waits[n-1].CPUs = w.CPUs
			continue
		}
		q.Waits = append(q.Waits, w)
	}
	return q
}

func limitsOf(s *Site) Limits {
	l := Limits{CPUs: known(s.CPUs), Pilots: known(s.Pilots), Hosts: known(s.Hosts), HostCPUs: known(s.Host.CPUs),
		MemoryMiB: known(s.Host.MemoryMiB), GPUs: s.Host.GPUs, Margin: corral.Seconds(s.Margin)}
	if s.Walltime < Unbounded {
		l.Walltime = corral.Seconds(s.Walltime)
	}
	for _, c := range s.Closed {
		l.Closed = append(l.Closed, Closure{corral.Seconds(c.From), corral.Seconds(c.To)})
	}
	return l
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
	return Cluster{Rate: a.Rate, Hop: time.Duration(a.Hop), Reuse: time.Duration(a.Reuse),
		Leave: time.Duration(a.Leave)}
}

// Runtime returns the Runtime of a task that is placed so: what it would take on the fastest hosts.
func (p *Plan) Runtime(at Placement) time.Duration {
	placed := at.Computes()
	if p.Assumed == nil {
		return placed
	}
	if speed := p.Assumed.speed(p.Pilots, at.Pilot); speed != 0 {
		return time.Duration(float64(placed) * float64(speed)).Round(time.Millisecond)
	}
	return placed
}

// speed is that of the hosts of a pilot: one of the plan's, or after those one that is present.
func (a *Assumed) speed(pilots []Pilot, at int) Speed {
	if k := at - len(pilots); k >= 0 {
		if k < len(a.Present) {
			return a.Present[k].Speed
		}
		return 0
	}
	for _, q := range a.Queues {
		if q.Site == pilots[at].Site && q.Queue == pilots[at].Queue {
			return q.Speed
		}
	}
	return 0
}

// Problem returns the problem that a plan was made for, as far as the plan depends on it.
func (a Assumed) Problem(w Work) Problem {
	p := Problem{Work: w, Cluster: a.Cluster()}
	for _, q := range a.Queues {
		s := q.site()
		s.Transfer = a.Transfer(q.Site)
		p.Sites = append(p.Sites, s)
	}
	number := map[string]int{} // :: task → index
	if slices.ContainsFunc(a.Present, func(t There) bool { return len(t.Running) > 0 }) {
		p.Work.Tasks = slices.Clone(w.Tasks)
		for i, t := range w.Tasks {
			number[t.ID] = i
		}
	}
	for _, t := range a.Present {
		q := t.present(number)
		q.Transfer = a.Transfer(q.Site)
		for _, r := range q.Running {
			p.Work.Tasks[r.Task].Bytes = Here
		}
		p.Present = append(p.Present, q)
	}
	return p
}

func (q Queue) site() Site {
	s := Site{
		Name: q.Site, Queue: q.Queue,
		Host: corral.Resources{CPUs: cmp.Or(q.HostCPUs, Unlimited), MemoryMiB: cmp.Or(q.MemoryMiB, Unlimited),
			GPUs: q.GPUs, DiskMiB: Unlimited},
		Hosts: cmp.Or(q.Hosts, Unlimited), Pilots: cmp.Or(q.Pilots, Unlimited), CPUs: cmp.Or(q.CPUs, Unlimited),
		Walltime: cmp.Or(time.Duration(q.Walltime), Unbounded), Margin: time.Duration(q.Margin),
		Overhead: time.Duration(q.Overhead), Pace: Pace{Speed: q.Speed},
		Tariff: Tariff{Rate: cost.Rate{Price: q.Price, Unit: q.Unit, Per: q.Per},
			Billing: cost.Billing{Minimum: time.Duration(q.Minimum), Period: time.Duration(q.Period)}},
		Left: q.Left, Calendar: Calendar{Room: profile(q.Room)},
		Wait:  func(shape Shape) time.Duration { return time.Duration(q.of(shape).Planned) },
		Waits: func(shape Shape, share float64) time.Duration { return q.of(shape).Waits.At(share) },
	}
	for _, c := range q.Closed {
		s.Closed = append(s.Closed, Span{time.Duration(c.From), time.Duration(c.To)})
	}
	return s
}

// of returns the waits of pilots of a shape, as they were written down.
func (q Queue) of(shape Shape) ShapeWaits {
	if len(q.Waits) == 0 {
		return ShapeWaits{}
	}
	i, _ := slices.BinarySearchFunc(q.Waits, shape.Hosts*shape.Host.CPUs, func(w ShapeWaits, cpus int) int {
		return cmp.Compare(w.CPUs, cpus)
	})
	return q.Waits[min(i, len(q.Waits)-1)]
}

// speedsOf lists the speeds of a problem's sites, by name.
func speedsOf(p Problem) map[string]Speed {
	all := map[string]Speed{}
	for i := range p.Sites {
		all[p.Sites[i].Name] = p.Sites[i].Speed
	}
	for _, q := range p.Present {
		all[q.Site] = q.Speed
	}
	maps.DeleteFunc(all, func(_ string, s Speed) bool { return s == 0 || s == 1 })
	return all
}

// SpeedAt is the speed of a site's hosts that the plan was made with; of a site that was not known it is 0, as if it
// had the fastest. The plan need not have pilots there.
func (p *Plan) SpeedAt(site string) Speed {
	if p.Assumed == nil {
		return 0
	}
	return p.Assumed.Speeds[site]
}

// Runtime is the Runtime of what took so long at hosts of this speed, in whole milliseconds.
func (s Speed) Runtime(took time.Duration) time.Duration {
	if s == 0 {
		return took
	}
	return time.Duration(float64(took) * float64(s)).Round(time.Millisecond)
}
