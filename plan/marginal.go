package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
	var all []Marginal
	for i := 1; i < len(points); i++ {
		if points[i-1].PeakCPUs < 1 { // a plan without cpus cannot be compared
			return nil
		}
		all = append(all, marginal(points[i-1], points[i]))
	}
	return all
}

func marginal(before, now Point) Marginal {
	m := Marginal{Point: now, Saved: before.Makespan - now.Makespan, SpeedUp: 1,
		Extra:  cost.Amount{Money: now.Cost.Money.Plus(-before.Cost.Money), Unit: now.Cost.Unit},
		Linear: float64(now.PeakCPUs) / float64(before.PeakCPUs)}
	if m.Saved != 0 {
		m.SpeedUp = float64(before.Makespan) / float64(now.Makespan)
	}
	if m.SpeedUp < m.Linear {
		m.Warning = fmt.Sprintf("%d cpus are only %.2f times as fast as %d, less than the linear %.2f times: "+
			"they cost %s more", now.PeakCPUs, m.SpeedUp, before.PeakCPUs, m.Linear, m.Extra)
	}
	switch rate := time.Duration(m.Saved).Seconds() / m.Extra.Money.Units(); {
	case m.Saved <= 0:
		m.Rate = new(float64)
	case m.Extra.Money > 0:
		m.Rate = &rate
	}
	return m
}
