package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// Evidence supports a plan beyond its estimates: the results of its simulations and the assumptions behind them.
type Evidence struct {
	// The algorithm that made the plan; empty in older plans, which were made by staircase.
	Algorithm  Algorithm   `json:"algorithm,omitempty"`
	Odds       *Odds       `json:"odds,omitempty"`       // nil: the plan was not simulated
	Confidence *Confidence `json:"confidence,omitempty"` // only if the request asked for a confidence and a bound
	// Only if the request asked for a comparison: the plan itself, those of other algorithms, and other policies.
	Comparison []Rival   `json:"comparison,omitempty"`
	Contest    []Entrant `json:"contest,omitempty"` // only for Auto: the result of each algorithm's plan
	Assumed    *Assumed  `json:"assumed,omitempty"` // nil: the assumptions were not recorded
	Asked      Asked     `json:"asked,omitzero"`
	// The sources of the tasks' estimates, in the order in which they are consulted.
	Estimates []Estimates `json:"estimates,omitempty"`
	Priors    []string    `json:"priors,omitempty"` // the basis of the waits in queues in which no pilot has run
}

// A Confidence is the share of simulated outcomes that keep the deadline and the budget.
type Confidence struct {
	Asked       float64  `json:"asked"`
	Reached     float64  `json:"reached"`
	NextCheaper *float64 `json:"next_cheaper_reaches"` // of the next cheaper candidate, in fewer outcomes; nil: none
}

// Met reports whether the confidence is reached, or is not judged.
func (c *Confidence) Met() bool { return c == nil || c.Reached >= c.Asked }

// A Rival is a plan, or a policy that only reacts to a queue, with the medians of its results over the outcomes in
// which all of them were simulated.
type Rival struct {
	Policy     string         `json:"policy"`               // of a plan: its algorithm
	Planned    bool           `json:"planned,omitempty"`    // it is a plan
	Chosen     bool           `json:"chosen,omitempty"`     // it is the plan of the request
	Why        string         `json:"why_not,omitempty"`    // why the algorithm made no plan; other values are then 0
	Parameters string         `json:"parameters,omitempty"` // empty: the defaults
	Makespan   corral.Seconds `json:"makespan_s"`
	Cost       cost.Amount    `json:"cost,omitzero"`
	PeakCPUs   int            `json:"peak_cpus"` // held at once
	CoreHours  float64        `json:"core_hours"`
	Waste      float64        `json:"waste"`
	Requests   int            `json:"requests"` // jobs submitted to sites
	Finished   float64        `json:"finished"` // share of outcomes in which the workflow completed
	// J(α) = α × cost + (1 − α) × makespan, each relative to the least in the list; 0: the objective is cpus.
	Weight float64 `json:"weight,omitempty"`
}

// An Entrant is an algorithm with the results of its plan. The outcomes are the same for all algorithms.
type Entrant struct {
	Algorithm Algorithm      `json:"algorithm"`
	Planned   corral.Seconds `json:"planned_s,omitempty"`  // the makespan of the plan itself
	Makespan  corral.Seconds `json:"makespan_s,omitempty"` // the median of the outcomes that completed; 0: none did
	Cost      cost.Amount    `json:"cost,omitzero"`        // the mean
	PeakCPUs  int            `json:"peak_cpus,omitempty"`  // held at once, as planned
	// Share of outcomes that were late, over budget or incomplete.
	Missed float64 `json:"missed"`
	Weight float64 `json:"weight,omitempty"` // for a trade-off: see Weighing
	Won    bool    `json:"won,omitempty"`
	Why    string  `json:"why_not,omitempty"` // why the algorithm made no plan
}

// Assumed records the input of a plan, so that the plan can be simulated and checked without the corrald that made it.
type Assumed struct {
	// Speeds holds the speed of each candidate site and each present pilot's site, except where it is 1.
	Speeds map[string]corral.Speed `json:"speeds,omitempty"`

	Hop     corral.Seconds `json:"hop_s"`
	Reuse   corral.Seconds `json:"reuse_s,omitempty"`
	Leave   corral.Seconds `json:"leave_s,omitempty"` // how long a pilot is held after its last task
	Rate    float64        `json:"tasks_per_s,omitempty"`
	Spread  string         `json:"error"`            // errors of runtimes, in the syntax of --error
	Errors  Errors         `json:"errors,omitempty"` // measured errors, which take precedence over Spread
	Queues  []Queue        `json:"queues"`
	Present []There        `json:"present,omitempty"` // pilots that are used before new ones are requested
	// The run whose remaining tasks are planned; 0: the plan is for a whole workflow.
	Run corral.RunID `json:"run_id,omitempty"`

	// One for each site to which files are transferred, even if the plan does not use it.
	Transfers []SiteTransfer `json:"transfers,omitempty"`
}

// A SiteTransfer is the assumed cost of transferring files to a site and back.
type SiteTransfer struct {
	Site      string         `json:"site"`
	Latency   corral.Seconds `json:"latency_s"`
	Bandwidth float64        `json:"bytes_per_s,omitempty"` // absent: the size does not matter
}

// A Queue records the assumptions about one queue of a site, as far as the plan's pilots use it.
type Queue struct {
	Site     string         `json:"site"`
	Queue    string         `json:"queue,omitempty"`
	Overhead corral.Seconds `json:"overhead_s"`
	Speed    corral.Speed   `json:"speed,omitempty"` // divides the tasks' runtimes; 0 means 1
	Limits
	Price   cost.Money     `json:"price"`
	Unit    cost.Unit      `json:"unit"`
	Per     cost.Per       `json:"per"`
	Minimum corral.Seconds `json:"billed_minimum_s,omitempty"`
	Period  corral.Seconds `json:"billed_period_s,omitempty"`
	Left    *cost.Money    `json:"left,omitempty"` // remainder of the account's allocation
	// The first entry with at least the pilot's cpus and walltime applies, otherwise the one with the most of both. An
	// entry without a walltime is for all of them.
	Waits []ShapeWaits `json:"waits"`
	Room  []Step       `json:"room,omitempty"` // free cpus over time, which limit how long pilots wait; none: not known
}

// Limits are a queue's maximums. 0 means that no limit is known, except for GPUs, where it means none.
type Limits struct {
	CPUs      int            `json:"cpus,omitempty"`   // held at once
	Pilots    int            `json:"pilots,omitempty"` // waiting or running at once
	Hosts     int            `json:"hosts,omitempty"`  // per pilot
	HostCPUs  int            `json:"host_cpus,omitempty"`
	MemoryMiB int            `json:"memory_mib,omitempty"` // per host
	GPUs      int            `json:"gpus,omitempty"`       // per host
	Walltime  corral.Seconds `json:"walltime_s,omitempty"`
	Margin    corral.Seconds `json:"margin_s,omitempty"` // no task is started within this time before the walltime ends
	Closed    []Closure      `json:"closed,omitempty"`

	Nodes []corral.NodeType `json:"nodes,omitempty"` // of which hosts are parts; none: not known
}

// A Closure is a period in which a queue runs no pilots.
type Closure struct {
	From corral.Seconds `json:"from_s"`
	To   corral.Seconds `json:"to_s"`
}

// A Spread is a distribution of times by its quantiles: the minimum, the maximum, and others at equal distances between
// them. A single element is a constant.
type Spread []corral.Seconds

// parts is the number of intervals into which NewSpread divides a distribution: 40, of 2.5 % each.
const parts = 40

// NewSpread samples a quantile function.
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

// At returns the quantile for a share, interpolated linearly. It returns 0 for an empty Spread.
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

// Assume records the parts of a problem on which a plan depends: the queues that the plan uses, the present pilots, and
// the distribution of runtimes.
func Assume(p Problem, pl *Plan, spread string) *Assumed {
	a := &Assumed{Hop: corral.Seconds(p.Cluster.Hop), Reuse: corral.Seconds(p.Cluster.Reuse),
		Leave: corral.Seconds(p.Cluster.Leave), Rate: p.Cluster.Rate, Spread: spread, Errors: p.Errors,
		Speeds: speedsOf(p), Queues: []Queue{}}
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

// assume records the transfer parameters of a site, once per site.
func (a *Assumed) assume(site string, t Transfer) {
	if t != (Transfer{}) && a.Transfer(site) == (Transfer{}) {
		a.Transfers = append(a.Transfers, SiteTransfer{site, corral.Seconds(t.Latency), t.Bandwidth})
	}
}

// Transfer returns the assumed transfer parameters of a site.
func (a *Assumed) Transfer(site string) Transfer {
	for _, t := range a.Transfers {
		if t.Site == site {
			return Transfer{time.Duration(t.Latency), t.Bandwidth}
		}
	}
	return Transfer{}
}

// queueOf records the parameters of a queue for pilots of the given shapes.
func queueOf(s *Site, shapes []Shape) Queue {
	r, b := s.Tariff.Rate, s.Tariff.Billing
	q := Queue{Site: s.Name, Queue: s.Queue, Overhead: corral.Seconds(s.Overhead), Speed: s.Speed, Limits: limitsOf(s),
		Price: r.Price,
		Unit:  r.Unit, Per: r.Per, Minimum: corral.Seconds(b.Minimum), Period: corral.Seconds(b.Period), Left: s.Left}
	for len(shapes) > 0 {
		same := slices.IndexFunc(shapes, func(x Shape) bool { return x.size() != shapes[0].size() })
		if same < 0 {
			same = len(shapes)
		}
		group := s.waitsOf(shapes[:same])
		shapes = shapes[same:]
		if n := len(q.Waits); n > 0 && len(group) == 1 && q.Waits[n-1].Walltime == 0 && q.Waits[n-1].alike(group[0]) {
			q.Waits[n-1].CPUs = group[0].CPUs
			continue
		}
		q.Waits = append(q.Waits, group...)
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
	for _, t := range s.Nodes {
		t.Resources = corral.Resources{CPUs: t.CPUs, MemoryMiB: known(t.MemoryMiB), GPUs: t.GPUs,
			DiskMiB: known(t.DiskMiB)}
		l.Nodes = append(l.Nodes, t)
	}
	return l
}

// known maps an unlimited number to 0, which JSON omits.
func known(n int) int {
	if n >= Unlimited {
		return 0
	}
	return n
}

// used returns the shapes of a plan's pilots at a site, one for each number of cpus and walltime, in ascending order of
// cpus.
func used(s *Site, pl *Plan) (shapes []Shape) {
	for _, q := range pl.Pilots {
		if q.Site == s.Name && q.Queue == s.Queue {
			shapes = append(shapes, Shape{Hosts: q.Hosts, Host: q.Host(), Walltime: time.Duration(q.Walltime)})
		}
	}
	slices.SortStableFunc(shapes, func(a, b Shape) int {
		return cmp.Or(a.size()-b.size(), cmp.Compare(a.Walltime, b.Walltime))
	})
	return slices.CompactFunc(shapes, func(a, b Shape) bool { return a.size() == b.size() && a.Walltime == b.Walltime })
}

// Cluster returns the assumed parameters of the cluster.
func (a Assumed) Cluster() Cluster {
	return Cluster{Rate: a.Rate, Hop: time.Duration(a.Hop), Reuse: time.Duration(a.Reuse),
		Leave: time.Duration(a.Leave)}
}

// runtime returns the Runtime of a placed task: the time that it would take on the fastest hosts.
func (p *Plan) runtime(at Placement) time.Duration {
	placed := at.Computes()
	if p.Assumed == nil {
		return placed
	}
	return p.Assumed.speed(p.Pilots, at.Pilot).Estimate(placed)
}

// speed returns the speed of a pilot's hosts. Present pilots are numbered after the plan's own.
func (a *Assumed) speed(pilots []Pilot, at int) corral.Speed {
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

// Problem reconstructs the problem for which a plan was made, as far as the plan depends on it.
func (a Assumed) Problem(w Work) Problem {
	p := Problem{Work: w, Cluster: a.Cluster(), Errors: a.Errors}
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
		Nodes: corral.SiteQueue{NodeTypes: q.Nodes}.Types(),
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

// Expect sets the waits of a site's queue to the recorded ones, if there are any.
func (a *Assumed) Expect(s *Site) {
	if a == nil {
		return
	}
	for _, q := range a.Queues {
		if known := q.site(); q.Site == s.Name && q.Queue == s.Queue {
			s.Wait, s.Waits = known.Wait, known.Waits
		}
	}
}

// speedsOf returns the speeds of a problem's sites by name.
func speedsOf(p Problem) map[string]corral.Speed {
	all := map[string]corral.Speed{}
	for i := range p.Sites {
		all[p.Sites[i].Name] = p.Sites[i].Speed
	}
	for _, q := range p.Present {
		all[q.Site] = q.Speed
	}
	maps.DeleteFunc(all, func(_ string, s corral.Speed) bool { return s == 0 || s == 1 })
	return all
}

// SpeedAt returns the speed that the plan assumed for a site's hosts, whether or not the plan has pilots there. It
// returns 0, which means the fastest hosts, if the site was not known.
func (p *Plan) SpeedAt(site string) corral.Speed {
	if p.Assumed == nil {
		return 0
	}
	return p.Assumed.Speeds[site]
}
