package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Tally computes the figures of a plan from its pilots and its schedule: everything of its Point except the makespan,
// and Billed and Waste. It is called again after the pilots or the schedule have changed.
func (p Problem) Tally(pl *Plan) {
	var held, billed, work time.Duration
	pl.Cost.Money, pl.Cost.Unit = 0, p.Unit()
	for _, q := range pl.Pilots {
		length, money := p.Site(q.Site, q.Queue).Tariff.Bill(q)
		cpus := time.Duration(q.HeldCPUs())
		held, billed = held+time.Duration(q.End-q.Start)*cpus, billed+length*cpus
		pl.Cost.Money = pl.Cost.Money.Plus(money)
	}
	for _, at := range pl.Schedule {
		if at.Pilot < len(pl.Pilots) {
			work += at.Computes() * time.Duration(at.UsedCPUs())
		}
	}
	pl.PeakCPUs, pl.CoreHours, pl.Billed = Peak(pl.Pilots, ""), held.Hours(), billed.Hours()
	if held > 0 {
		pl.Waste = 1 - float64(work)/float64(held)
	}
}

// Peak returns the maximum number of cpus that pilots hold at once, at one site or, if site is empty, in total.
func Peak(pilots []Pilot, site string) (most int) {
	type change struct {
		at   corral.Seconds
		cpus int
	}
	var changes []change
	for _, q := range pilots {
		if n := q.HeldCPUs(); site == "" || q.Site == site {
			changes = append(changes, change{q.Start, n}, change{q.End, -n})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.cpus-b.cpus) })
	now := 0
	for _, c := range changes {
		now += c.cpus
		most = max(most, now)
	}
	return most
}
