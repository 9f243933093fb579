package planner

// Pilots in slots. A candidate whose hosts are in slots uses the same list schedule as any other, with three
// restrictions: a host exists only from the beginning of its slot, no task may end after the end of the slot, and the
// next pilot in the slot waits until the previous walltime has ended. The slots to try are chosen by
// plan/planner/algorithm; for this package they are given, like the limits of a site.

import "github.com/corral-pilot/corral/plan"

// A Slot is a part of a site's capacity that a plan's pilots may use: a number of cpus of a queue in an interval. If
// the room of a queue is known, the slots of a choice are disjoint parts of it; otherwise a slot is the capacity of the
// queue after its wait. No slot is longer than the queue's walltime.
type Slot struct {
	Site, Queue string
	CPUs        int
	plan.Span
}

// inSlots returns the candidates whose hosts fit the slots of a choice, for each choice and host size.
func inSlots(p *planning, choices [][]Slot) (all []candidate) {
	if len(p.Present) > 0 {
		all = append(all, candidate{}) // the present pilots may suffice
	}
	for _, cpus := range p.hostSizes() {
		for _, slots := range choices {
			if c := hosts(p, slots, cpus); len(c) > 0 {
				all = append(all, c)
			}
		}
	}
	return all
}

// hosts returns the hosts of one size that fit the slots, which are filled in order.
func hosts(p *planning, slots []Slot, cpus int) (c candidate) {
	first, room := plan.Unbounded, p.mostHosts(cpus)
	for _, s := range slots {
		first = min(first, s.From)
	}
	for i := range slots {
		if p.Goal.Static && slots[i].From > first {
			continue
		}
		site := p.Site(slots[i].Site, slots[i].Queue)
		if site == nil {
			continue
		}
		if s, ok := p.share(site, cpus); ok {
			s.slot = &slots[i]
			if s.count = min(s.count, slots[i].CPUs/cpus, room); s.count > 0 {
				c = append(c, s)
			}
		}
	}
	return c
}
