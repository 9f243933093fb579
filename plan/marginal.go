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

// Marginals sorts the plans of a front by cpus and compares each with its predecessor: the makespan saved for the
// additional cost (Juve 2012, chapter 4: d(makespan) ÷ d(cost)). Among plans with the same number of cpus it keeps the
// plan with the shortest makespan.
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
	if err != nil { // a plan without cpus cannot be compared
		return nil
	}
	var all []Marginal
	for i, m := range found {
		now := Marginal{Point: points[i+1], Saved: corral.Seconds(m.Saved), SpeedUp: m.SpeedUp, Linear: m.Linear,
			Extra: cost.Amount{Money: m.Extra, Unit: points[i+1].Cost.Unit}}
		if m.SpeedUp < m.Linear {
			now.Warning = fmt.Sprintf("%d cpus are only %.2f times as fast as %d, less than the linear %.2f times: "+
				"they cost %s more", now.PeakCPUs, now.SpeedUp, points[i].PeakCPUs, now.Linear, now.Extra)
		}
		if rate := m.Rate(); !math.IsInf(rate, 1) {
			now.Rate = &rate
		}
		all = append(all, now)
	}
	return all
}
