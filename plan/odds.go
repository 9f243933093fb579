package plan

import (
	"fmt"
	"math"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// Odds are the results of a plan in simulated outcomes, in which waits, runtimes and host speeds are random.
type Odds struct {
	Outcomes int    `json:"outcomes"`
	Finishes Share  `json:"finishes"`                  // every task completes
	InTime   *Share `json:"within_deadline,omitempty"` // nil without a deadline
	InBudget *Share `json:"within_budget,omitempty"`   // nil without a budget

	Makespan Typical[corral.Seconds] `json:"makespan_s"` // of the outcomes that finish; zero if none does
	Cost     Typical[cost.Amount]    `json:"cost"`
}

// Typical describes a distribution by its median and the value that nine of ten outcomes do not exceed.
type Typical[T any] struct {
	Median T `json:"p50"`
	P90    T `json:"p90"`
}

// A Share is the observed share of outcomes, with the 95 % interval of the true share.
type Share struct {
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// ShareOf returns the share of n in a positive number of outcomes, with Wilson's score interval (Wilson 1927).
func ShareOf(n, outcomes int) Share {
	const z = 1.959964 // two-sided 95 %
	all := float64(outcomes)
	p := float64(n) / all
	middle := (p + z*z/(2*all)) / (1 + z*z/all)
	half := z / (1 + z*z/all) * math.Sqrt(p*(1-p)/all+z*z/(4*all*all))
	return Share{p, max(0, min(p, middle-half)), min(1, max(p, middle+half))}
}

// String formats the share and its interval as percentages.
func (s Share) String() string {
	return fmt.Sprintf("%.3g %% (%.3g–%.3g %%)", 100*s.Share, 100*s.Low, 100*s.High)
}
