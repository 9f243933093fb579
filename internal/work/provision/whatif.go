package provision

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// WhatIf changes sites to the requested assumptions, and describes them. The wait and the start-up time that --overhead
// represents count as held, so the actual cost is at most the planned cost.
//
// The remainder of an allocation is in the unit of the site's own price, so it does not limit spending at a price in
// another unit.
func WhatIf(sites []plan.Site, in plan.WhatIf) (said []string, err error) {
	asked, err := cost.ParseTariff(in.Price, in.Billing)
	if err != nil {
		return nil, err
	}
	for i := range sites {
		s := &sites[i]
		before := s.Tariff
		if s.Tariff = assume(before, asked, in); s.Tariff.Unit() != before.Rate.Unit && s.Left != nil {
			said = append(said, fmt.Sprintf("what is left of the allocation at site %s, %s, does not count at a "+
				"price in %s", s.Name, cost.Amount{Money: *s.Left, Unit: before.Rate.Unit}, asked.Rate.Unit))
			s.Left = nil
		}
		if in.Overhead != nil {
			s.Overhead = time.Duration(*in.Overhead).Round(time.Millisecond)
			s.Wait, s.Waits = func(plan.Shape) time.Duration { return 0 }, nil
		}
		if in.QueueWait != nil {
			wait := time.Duration(*in.QueueWait).Round(time.Millisecond)
			s.Wait, s.Waits = func(plan.Shape) time.Duration { return wait }, nil
		}
	}
	for _, given := range []struct{ what, value string }{{"the price", in.Price}, {"billing by", in.Billing}} {
		if given.value != "" {
			said = append(said, fmt.Sprintf("%s %s is assumed, as asked", given.what, given.value))
		}
	}
	switch {
	case in.QueueWait != nil && in.Overhead != nil:
		said = append(said, fmt.Sprintf("a wait of %s and %s of start-up are assumed for every pilot, as requested",
			*in.QueueWait, *in.Overhead))
	case in.QueueWait != nil:
		said = append(said, fmt.Sprintf("a wait of %s is assumed for every pilot, as requested", *in.QueueWait))
	case in.Overhead != nil:
		said = append(said, fmt.Sprintf("%s of start-up, and no wait, is assumed of every pilot, as asked",
			*in.Overhead))
	}
	return said, nil
}

// assume returns a tariff with the requested parts of asked.
func assume(t plan.Tariff, asked cost.Tariff, in plan.WhatIf) plan.Tariff {
	if in.Price != "" {
		t.Rate = asked.Rate
	}
	if in.Billing != "" {
		t.Billing = asked.Billing
	}
	return t
}

// SameUnit refuses sites whose prices are in different units, because a plan cannot add them up, and a budget in a unit
// other than the sites'.
func SameUnit(sites []plan.Site, budget *cost.Amount) error {
	for _, s := range sites {
		if first := sites[0]; s.Tariff.Unit() != first.Tariff.Unit() {
			return corral.ErrorAt(corral.Invalid, "sites", "the price of site %s is in %s, that of site %s in %s: "+
				"plan for some of them (--site), or with one price (--price)", first.Name, first.Tariff.Unit(),
				s.Name, s.Tariff.Unit())
		}
		if unit := s.Tariff.Unit(); budget != nil && budget.Unit != unit {
			return corral.ErrorAt(corral.Invalid, "budget", "%s is in %s, and the price of site %s, %s, in %s", *budget,
				budget.Unit, s.Name, s.Tariff.Rate, unit)
		}
	}
	return nil
}
