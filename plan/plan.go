package plan

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// A Plan says which pilots to ask for, and what is expected of them. It is also what corral plan prints, and what is
// kept of it.
type Plan struct {
	Workflow string `json:"workflow"`
	Feasible bool   `json:"feasible"`
	Goal     Goal   `json:"goal"`

	Clustering clustering.Rule `json:"clustering"` // how tasks become jobs

	Pilots []Pilot `json:"pilots"` // by Submit
	Point
	Billed float64 `json:"billed_core_hours"`
	Waste  float64 `json:"waste"` // 1 − work ÷ core-hours held, both of the plan's own pilots

	Evidence
	LowerBound *int     `json:"lower_bound_cpus"` // no fewer cpus can meet the deadline; null without one
	Reasons    []string `json:"reasons"`
	Limits     []string `json:"limits,omitempty"` // that cut what was asked for
	Alternatives
	Schedule []Placement `json:"schedule,omitempty"`
	Apart    *Apart      `json:"schedule_apart,omitempty"` // instead of a schedule of more than MostWithin tasks
}

// A Summary is what lists of plans have instead of their documents.
type Summary struct {
	Feasible bool `json:"feasible"`
	Pilots   int  `json:"pilots"`
	Point
	Waste float64 `json:"waste"`
}

// Summary sums the plan up.
func (p *Plan) Summary() Summary { return Summary{p.Feasible, len(p.Pilots), p.Point, p.Waste} }

// Alternatives are what else could be done.
type Alternatives struct {
	Front    []Point    `json:"front"` // no other candidate is both sooner and cheaper; by makespan
	Marginal []Marginal `json:"marginal,omitempty"`
	Nearest  *Plan      `json:"nearest,omitempty"` // of what cannot be done: the closest that can
}

// A Goal is what a plan was asked to reach.
type Goal struct {
	Objective  Objective      `json:"objective"`
	Deadline   corral.Seconds `json:"deadline_s,omitempty"` // 0: none
	Budget     *cost.Amount   `json:"budget,omitempty"`
	Tradeoff   float64        `json:"tradeoff"`             // 0: only the makespan counts, 1: only the cost
	Confidence float64        `json:"confidence,omitempty"` // of meeting the deadline; 0: the estimates are believed
}

// Asked is what a request said of the sites that a plan is for, and of their pilots. What a plan is revised by keeps to
// it.
type Asked struct {
	Sites []string `json:"sites,omitempty"`     // names; none: all that take pilots
	Shape int      `json:"host_cpus,omitempty"` // of each pilot's hosts; 0: the planner chooses
	WhatIf
}

// WhatIf is planned with instead of what is known of all sites.
type WhatIf struct {
	Price    string          `json:"price,omitempty"`
	Billing  string          `json:"billing,omitempty"`
	Overhead *corral.Seconds `json:"overhead_s,omitempty"` // wait and start-up together
}

// An Objective is what is made small within the deadline and the budget.
type Objective string

const (
	Makespan Objective = "makespan"
	Cost     Objective = "cost"
	CPUs     Objective = "cpus" // held at once
	Tradeoff Objective = "tradeoff"
)

// Objectives lists what may be asked for.
var Objectives = []Objective{Makespan, Cost, CPUs, Tradeoff}

// A Pilot is one pilot to ask for. Of one that hedges another the times are those until it is withdrawn, as expected;
// no task is planned on it. One that follows another is asked for as long after that one's start as planned: it
// comes earlier or later if that one does.
type Pilot struct {
	Site      string         `json:"site"`
	Queue     string         `json:"queue,omitempty"`
	Hosts     int            `json:"hosts"`
	CPUs      int            `json:"cpus"` // of each host
	MemoryMiB int            `json:"memory_mib,omitempty"`
	GPUs      int            `json:"gpus,omitempty"`
	Walltime  corral.Seconds `json:"walltime_s"`
	Submit    corral.Seconds `json:"submit_s"`
	Start     corral.Seconds `json:"start_s"`
	Ready     corral.Seconds `json:"ready_s"`
	End       corral.Seconds `json:"end_s"`
	Follows   *int           `json:"follows,omitempty"` // index of an earlier one, whose place it takes; nil: none's
	Early     bool           `json:"early,omitempty"`   // it may be there before there is work for it, and is to stay
	Hedges    *int           `json:"hedges,omitempty"`  // index of one before it at another site: the later goes
}

// Patience is how long it stays without work. One that takes the place of another may come earlier than planned, by its
// wait at most, and is not to leave before its place is free; nor is one that was asked for early before its work is
// due.
func (p Pilot) Patience() corral.Seconds {
	switch {
	case p.Follows != nil:
		return LeaveAfter + p.Start - p.Submit
	case p.Early:
		return LeaveAfter + p.Ready - p.Submit
	}
	return LeaveAfter
}

// Hedged returns the pilots without those that hedge others, which come last.
func Hedged(pilots []Pilot) []Pilot {
	n := len(pilots)
	for n > 0 && pilots[n-1].Hedges != nil {
		n--
	}
	return pilots[:n]
}

// Host is what each of its hosts offers.
func (p Pilot) Host() corral.Resources {
	return corral.Resources{CPUs: p.CPUs, MemoryMiB: p.MemoryMiB, GPUs: p.GPUs}
}

// HeldCPUs is how many cpus it holds.
func (p Pilot) HeldCPUs() int { return p.Hosts * p.CPUs }

// A Point is a plan in short.
type Point struct {
	Makespan  corral.Seconds `json:"makespan_s"` // until the last task's end
	CoreHours float64        `json:"core_hours"` // held, from start to release
	Cost      cost.Amount    `json:"cost"`
	PeakCPUs  int            `json:"peak_cpus"` // held at once
}

// A Marginal says what the further cpus of a point of the front are worth, compared with the point before it, which has
// fewer. Cpus of one price lower the cost only if the speed-up is more than linear.
type Marginal struct {
	Point
	Saved   corral.Seconds `json:"saved_s"`         // of the makespan
	Extra   cost.Amount    `json:"extra"`           // that it costs
	Rate    *float64       `json:"saved_s_per_one"` // seconds saved for one unit more; null: nothing more is paid
	SpeedUp float64        `json:"speed_up"`
	Linear  float64        `json:"linear"` // the speed-up at which the cost would stay
	Warning string         `json:"warning,omitempty"`
}

// An Algorithm names how a plan is sought.
type Algorithm string

// The algorithms. The package planner/algorithm says how each goes about it.
const (
	Auto      Algorithm = "auto"      // plays the plans of all others, and takes the best
	Staircase Algorithm = "staircase" // pilots come and go with the width of the graph, after waits as they were
	MOGA      Algorithm = "moga"      // pilots are in the best choice of what room the queues have
	Greedy    Algorithm = "greedy"    // stage by stage pilots take the best place that the queues have for them
	VAR       Algorithm = "var"       // as staircase, with pilots asked for so early that they are probably in time
	Combined  Algorithm = "combined"  // as var, but for pilots that the queue has room for at their time
)

// Algorithms lists what may be asked for.
var Algorithms = []Algorithm{Auto, Staircase, MOGA, Greedy, VAR, Combined}

// Sought is what a request says of how pilots are sought.
type Sought struct {
	Algorithm Algorithm `json:"algorithm,omitempty"` // empty: Staircase
	Hedge     bool      `json:"hedge,omitempty"`     // ask for them at another site, too, and withdraw the later ones
}

// A Placement says where and when the plan has one task run.
type Placement struct {
	Task  int            `json:"-"`
	ID    string         `json:"task"`
	Kind  string         `json:"kind,omitempty"` // its transformation
	CPUs  int            `json:"cpus,omitempty"` // that it uses; 0, in older plans: unknown
	Pilot int            `json:"pilot"`          // index among the plan's, then among those that are present
	Host  int            `json:"host"`           // of that pilot
	Start corral.Seconds `json:"start_s"`
	End   corral.Seconds `json:"end_s"`

	// Of the time from Start to End: how long its files are on their way. The task itself takes the rest.
	Transfer corral.Seconds `json:"transfer_s,omitempty"`
}

// Computes is how long the task itself takes there.
func (p Placement) Computes() time.Duration { return time.Duration(p.End - p.Start - p.Transfer) }

// UsedCPUs is how many cpus the task uses, 1 where that is unknown.
func (p Placement) UsedCPUs() int { return max(1, p.CPUs) }

// LongestDeadline is the longest that a plan may be asked for: a leap year.
const LongestDeadline = corral.Seconds(366 * 24 * time.Hour)

// Beyond rounds a time for people to tenths of a second, or to as many digits as tell it from a bound that it exceeds.
func Beyond(d, bound time.Duration) time.Duration {
	for unit := 100 * time.Millisecond; unit > time.Millisecond; unit /= 10 {
		if r := d.Round(unit); r > bound || d <= bound {
			return r
		}
	}
	return d
}

// Bytes writes a number of bytes for people, to four digits.
func Bytes(b float64) string {
	unit, units := 0, []string{"B", "KiB", "MiB", "GiB"}
	for ; b >= 1<<10 && unit+1 < len(units); unit++ {
		b /= 1 << 10
	}
	return fmt.Sprintf("%.4g %s", b, units[unit])
}

// CoreTime writes core-hours for people, in the unit in which they are neither tiny nor long.
func CoreTime(hours float64) string {
	switch {
	case hours < 2./60:
		return fmt.Sprintf("%.3g core-seconds", hours*3600)
	case hours < 2:
		return fmt.Sprintf("%.3g core-minutes", hours*60)
	}
	return fmt.Sprintf("%.4g core-hours", hours)
}
