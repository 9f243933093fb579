package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
)

// Marginals compares each plan of a front with the one before it that holds fewer cpus, by ascending cpus: what is
// saved of the makespan for what is paid more (Juve 2012, chapter 4: d(makespan) ÷ d(cost)). Of plans that hold the
// same cpus the soonest counts.
func Marginals(front []Point) []Marginal {
	points := slices.Clone(front)
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(a.PeakCPUs-b.PeakCPUs, cmp.Compare(a.Makespan, b.Makespan))
	})
	points = slices.CompactFunc(points, func(a, b Point) bool { return a.PeakCPUs == b.PeakCPUs })
	steps := make([]cost.Step, len(points))
	for i, p := range points {
		steps[i] = cost.Step{Nodes: p.PeakCPUs,
			Point: cost.Point{Makespan: time.Duration(p.Makespan), Cost: p.Cost.Money}}
	}
	found, err := cost.Marginals(steps)
	if err != nil { // a plan that holds nothing has nothing to compare
		return nil
	}
	var all []Marginal
	for i, m := range found {
		now := Marginal{Point: points[i+1], Saved: corral.Seconds(m.Saved), SpeedUp: m.SpeedUp, Linear: m.Linear,
			Extra: cost.Amount{Money: m.Extra, Unit: points[i+1].Cost.Unit}}
		if m.SpeedUp < m.Linear {
			now.Warning = fmt.Sprintf("%d cpus are %.2f times as fast as %d, which is less than %.2f times: they cost "+
				"%s more", now.PeakCPUs, now.SpeedUp, points[i].PeakCPUs, now.Linear, now.Extra)
		}
		if rate := m.Rate(); !math.IsInf(rate, 1) {
			now.Rate = &rate
		}
		all = append(all, now)
	}
	return all
}
