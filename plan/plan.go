package plan

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A Plan lists the pilots to request and the results that are expected of them. It is also the output of corral plan,
// and the document that is stored.
type Plan struct {
	Workflow string `json:"workflow"`
	Feasible bool   `json:"feasible"`
	Goal     Goal   `json:"goal"`

	Clustering clustering.Rule `json:"clustering"` // how tasks become jobs

	Pilots []Pilot `json:"pilots"` // by Submit
	Point
	Billed float64 `json:"billed_core_hours"`
	Waste  float64 `json:"waste"` // 1 − work ÷ core-hours held, for the plan's own pilots only

	Evidence
	// A lower bound on the cpus that meet the deadline; null without a deadline.
	LowerBound *int     `json:"lower_bound_cpus"`
	Reasons    []string `json:"reasons"`
	Limits     []string `json:"limits,omitempty"` // limits that reduced the request
	Alternatives
	Schedule []Placement `json:"schedule,omitempty"`
	Apart    *Apart      `json:"schedule_apart,omitempty"` // replaces a schedule of more than MostWithin tasks
}

// A Summary replaces the document in lists of plans.
type Summary struct {
	Feasible bool `json:"feasible"`
	Pilots   int  `json:"pilots"`
	Point
	Waste float64 `json:"waste"`
}

// Summary returns the plan's summary.
func (p *Plan) Summary() Summary { return Summary{p.Feasible, len(p.Pilots), p.Point, p.Waste} }

// Alternatives describes the other options that were considered.
type Alternatives struct {
	// The candidates that no other candidate dominates in both makespan and cost, by makespan.
	Front    []Point    `json:"front"`
	Marginal []Marginal `json:"marginal,omitempty"`
	Nearest  *Plan      `json:"nearest,omitempty"` // for an infeasible goal: the closest feasible plan
}

// A Goal is the objective of a plan, with its bounds.
type Goal struct {
	Objective Objective      `json:"objective"`
	Deadline  corral.Seconds `json:"deadline_s,omitempty"` // 0: none
	// The deadline as an instant, from which Deadline was computed when the plan was made; zero: it is a duration.
	DeadlineAt time.Time    `json:"deadline_at,omitzero"`
	Budget     *cost.Amount `json:"budget,omitempty"`
	Tradeoff   Share        `json:"tradeoff"` // weight of the cost; 0: only the makespan matters
	// Required probability of meeting the deadline; 0: the estimates are trusted.
	Confidence float64 `json:"confidence,omitempty"`
	Bounds
}

// From returns the goal of a plan that begins at an instant: bounds that are instants also become durations, a deadline
// of at least a millisecond.
func (g Goal) From(began time.Time) Goal {
	if !g.DeadlineAt.IsZero() {
		g.Deadline = corral.Seconds(max(time.Millisecond, g.DeadlineAt.Sub(began).Truncate(time.Millisecond)))
	}
	if !g.NotBeforeAt.IsZero() {
		g.NotBefore = corral.Seconds(max(0, g.NotBeforeAt.Sub(began).Round(time.Millisecond)))
	}
	return g
}

// margin is the share of the time until a deadline that is left for making the plan and applying it; it is at most
// maxMargin.
const (
	margin    = 100
	maxMargin = time.Minute
)

// Planned returns the goal of a plan that is being made: if the deadline is an instant, the plan may begin a little
// later than now.
func (g Goal) Planned(now time.Time) Goal {
	later := now.Add(min(g.DeadlineAt.Sub(now)/margin, maxMargin))
	planned := g.From(now)
	planned.Deadline = g.From(later).Deadline
	return planned
}

// Asked holds the part of a request that revisions and the run of the plan obey.
type Asked struct {
	Sites []string `json:"sites,omitempty"`     // names; none: all sites that accept pilots
	Shape int      `json:"host_cpus,omitempty"` // per host of each pilot; 0: the planner chooses
	WhatIf
	NoLearn bool `json:"no_learn,omitempty"` // without what earlier runs have measured and learned
}

// WhatIf holds values that override the known parameters of all sites.
type WhatIf struct {
	Price    string          `json:"price,omitempty"`
	Billing  string          `json:"billing,omitempty"`
	Overhead *corral.Seconds `json:"overhead_s,omitempty"` // queue wait and start-up together
	// The wait of each pilot in its queue, which is not billed. If Overhead is set, it is only the start-up.
	QueueWait *corral.Seconds `json:"queue_wait_s,omitempty"`
}

// GivesWaits reports whether the values replace what is known of queue waits.
func (w WhatIf) GivesWaits() bool { return w.Overhead != nil || w.QueueWait != nil }

// An Objective is the quantity that is minimized within the deadline and the budget.
type Objective string

const (
	Makespan Objective = "makespan"
	Cost     Objective = "cost"
	CPUs     Objective = "cpus" // held at once
	Tradeoff Objective = "tradeoff"
)

// Objectives lists the valid objectives.
var Objectives = []Objective{Makespan, Cost, CPUs, Tradeoff}

// A Pilot is one pilot to request. If it hedges another, its times are those expected until it is withdrawn, and no
// task is planned on it. If it follows another, it is submitted at the planned interval after the other's actual start,
// and thus moves with it.
type Pilot struct {
	Site  string `json:"site"`
	Queue string `json:"queue,omitempty"`
	corral.Shape
	Submit  corral.Seconds `json:"submit_s"`
	Start   corral.Seconds `json:"start_s"`
	Ready   corral.Seconds `json:"ready_s"`
	End     corral.Seconds `json:"end_s"`
	Follows *int           `json:"follows,omitempty"` // index of the earlier pilot that it replaces; nil: none
	// For this long after its start the pilot does not leave for lack of work: the plan has work for it until then.
	MinStay corral.Seconds `json:"min_stay_s,omitempty"`
	// The pilot may start before there is work for it, and then has to wait.
	Early bool `json:"early,omitempty"`
	// Index of an earlier pilot at another site; the one that starts later is withdrawn.
	Hedges *int `json:"hedges,omitempty"`
}

// Patience returns how long the pilot stays without work. A pilot that replaces another may start earlier than planned,
// by at most its wait, and must not leave before the place of that pilot is free. A pilot that was submitted early must
// not leave before its work is due.
func (p Pilot) Patience() corral.Seconds {
	switch {
	case p.Follows != nil:
		return LeaveAfter + p.Start - p.Submit
	case p.Early:
		return LeaveAfter + p.Ready - p.Submit
	}
	return LeaveAfter
}

// Throughout reports whether the pilot stays for its whole walltime, as a static pilot does: the end of the run
// releases it.
func (p Pilot) Throughout() bool { return p.MinStay > 0 && p.MinStay >= p.Walltime }

// Hedged returns the pilots without those that hedge others, which are at the end of the slice.
func Hedged(pilots []Pilot) []Pilot {
	n := len(pilots)
	for n > 0 && pilots[n-1].Hedges != nil {
		n--
	}
	return pilots[:n]
}

// Host returns the resources of each of the pilot's hosts.
func (p Pilot) Host() corral.Resources {
	return corral.Resources{CPUs: p.CPUs, MemoryMiB: p.MemoryMiB, GPUs: p.GPUs}
}

// HeldCPUs returns the number of cpus that the pilot holds.
func (p Pilot) HeldCPUs() int { return p.Hosts * p.CPUs }

// A Point holds the key figures of a plan.
type Point struct {
	Makespan  corral.Seconds `json:"makespan_s"` // from 0 to the end of the last task
	CoreHours float64        `json:"core_hours"` // held, from start to release
	Cost      cost.Amount    `json:"cost"`
	PeakCPUs  int            `json:"peak_cpus"` // held at once
}

// A Marginal compares a point of the front with the preceding point, which has fewer cpus. With one price per cpu,
// additional cpus lower the cost only if the speed-up is more than linear.
type Marginal struct {
	Point
	Saved corral.Seconds `json:"saved_s"` // reduction of the makespan
	Extra cost.Amount    `json:"extra"`   // additional cost
	// Seconds saved per unit of additional cost; null: there is no additional cost.
	Rate    *float64 `json:"saved_s_per_one"`
	SpeedUp float64  `json:"speed_up"`
	Linear  float64  `json:"linear"` // the speed-up at which the cost would stay the same
	Warning string   `json:"warning,omitempty"`
}

// An Algorithm names a method of planning.
type Algorithm string

// The algorithms. Package plan/planner/algorithm describes how each of them works.
const (
	Auto      Algorithm = "auto"      // simulates the plans of all other algorithms and chooses the best
	Staircase Algorithm = "staircase" // pilots follow the width of the graph, with waits from history
	MOGA      Algorithm = "moga"      // a genetic algorithm searches for pilots in the free capacity of the queues
	Greedy    Algorithm = "greedy"    // the pilots of each stage get the best available places in the queues
	VAR       Algorithm = "var"       // like staircase, with pilots submitted so early that they are probably in time
	Combined  Algorithm = "combined"  // like var, except for pilots that the queue's free capacity can accommodate
)

// Algorithms lists the valid algorithms.
var Algorithms = []Algorithm{Auto, Staircase, MOGA, Greedy, VAR, Combined}

// Sought holds the part of a request that chooses how to plan.
type Sought struct {
	// Empty: Auto if the workflow has at most 200 tasks and the queue of a site is known, otherwise Staircase.
	Algorithm Algorithm `json:"algorithm,omitempty"`
	// Also request pilots at a second site, and withdraw the ones that start later.
	Hedge bool `json:"hedge,omitempty"`
}

// A Placement is the place and the time of one task in a plan.
type Placement struct {
	Task  int            `json:"-"`
	ID    string         `json:"task"`
	Kind  string         `json:"kind,omitempty"` // the task's transformation
	CPUs  int            `json:"cpus,omitempty"` // cpus used by the task; 0 in older plans: unknown
	Pilot int            `json:"pilot"`          // index among the plan's pilots, followed by the present ones
	Host  int            `json:"host"`           // index among the pilot's hosts
	Start corral.Seconds `json:"start_s"`
	End   corral.Seconds `json:"end_s"`

	// Transfer is the part of the time from Start to End in which the task's files are in transit. The rest is
	// computation.
	Transfer corral.Seconds `json:"transfer_s,omitempty"`
}

// Computes returns the computation time of the task.
func (p Placement) Computes() time.Duration { return time.Duration(p.End - p.Start - p.Transfer) }

// UsedCPUs returns the number of cpus that the task uses, or 1 if that is unknown.
func (p Placement) UsedCPUs() int { return max(1, p.CPUs) }

// LongestDeadline is the maximum deadline of a plan: a leap year.
const LongestDeadline = corral.Seconds(366 * 24 * time.Hour)

// Beyond rounds a time for display: to tenths of a second, or to as many digits as distinguish it from a bound that it
// exceeds.
func Beyond(d, bound time.Duration) time.Duration {
	for unit := 100 * time.Millisecond; unit > time.Millisecond; unit /= 10 {
		if r := d.Round(unit); r > bound || d <= bound {
			return r
		}
	}
	return d
}

// Bytes formats a number of bytes for display with four digits.
func Bytes(b float64) string {
	unit, units := 0, []string{"B", "KiB", "MiB", "GiB"}
	for ; b >= 1<<10 && unit+1 < len(units); unit++ {
		b /= 1 << 10
	}
	return fmt.Sprintf("%.4g %s", b, units[unit])
}

// CoreTime formats core-hours for display, in a unit of suitable size.
func CoreTime(hours float64) string {
	switch {
	case hours < 2./60:
		return fmt.Sprintf("%.3g core-seconds", hours*3600)
	case hours < 2:
		return fmt.Sprintf("%.3g core-minutes", hours*60)
	}
	return fmt.Sprintf("%.4g core-hours", hours)
}
