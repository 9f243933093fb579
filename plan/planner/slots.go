package planner

// Pilots in slots. A candidate whose hosts are in slots is played by the same list schedule as any other: only that a
// host is there from its slot's beginning on, no task may end behind its slot, and its next pilot there waits until the
// walltime of the one before must be over. What slots a plan is to try is decided elsewhere (plan/planner/algorithm):
// here they are as given as the limits of a site.

import "github.com/corral-pilot/corral/plan"

// A Slot is a part of what a site gives that a plan's pilots may be in: so many cpus of a queue, from one instant until
// another. Of a queue whose room is known the slots of a choice are parts of that room that do not overlap; of another
// one it is what the queue gives after its wait. No slot is longer than the queue's walltime.
type Slot struct {
	Site, Queue string
	CPUs        int
	plan.Span
}

// inSlots are the candidates of hosts that slots of a choice have room for, choice by choice, for each size of hosts.
func inSlots(p *planning, choices [][]Slot) (all []candidate) {
	if len(p.Present) > 0 {
		all = append(all, candidate{}) // what is present may suffice
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

// hosts are those of one size in some slots, which are filled in their order.
func hosts(p *planning, slots []Slot, cpus int) (c candidate) {
	for i := range slots {
		site := p.Site(slots[i].Site, slots[i].Queue)
		if site == nil {
			continue
		}
		if s, ok := p.share(site, cpus); ok {
			s.slot = &slots[i]
			if s.count = min(s.count, slots[i].CPUs/cpus, (p.most+cpus-1)/cpus); s.count > 0 {
				c = append(c, s)
			}
		}
	}
	return c
}
