package main

import (
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// promise reserves each slot that 256 processors offer, one at a time and whole, and counts the slots after which a
// waiting job has a later planned start. Conservative backfilling and FCFS must not have any (F6). EASY's starts are
// forecasts: a reservation may cause another job to be backfilled, and so move starts in either direction.
func (d *desk) promise() error {
	base, err := d.lublin(256)
	if err != nil {
		return err
	}
	d.printf("\nSlots of 256 processors, at 85 %% load, each taken by itself:\n\n")
	d.printf("| policy | slots | delay somebody | starts that are planned | are later | are earlier |\n")
	d.printf("|---|---|---|---|---|---|\n")
	for _, policy := range []queue.Discipline{queue.Conservative, queue.FCFS, queue.EASY} {
		m := base.loaded(0.85)
		m.Policy = policy
		slots, delaying, starts, later, earlier := 0, 0, 0, 0, 0
		for _, q := range m.states(d.pick(300, 1000)) {
			s := market.Advertise("", q, unit)
			o, err := s.Offer()
			if err != nil {
				return err
			}
			if len(o.Slots) > 200 || q.Waiting() > 200 { // FCFS cannot sustain this load, so more states add nothing
				continue
			}
			before := queue.Planned(q)
			for i, one := range o.Slots {
				again := market.Advertise("", q.Clone(), unit)
				p := slot.Piece{Slot: i, Start: one.Start, Length: one.Length, Processors: one.Processors}
				if err := again.Reserve(o, []slot.Piece{p}); err != nil {
					return err
				}
				a, b := moved(before, queue.Planned(again.Queue))
				slots, starts, later, earlier = slots+1, starts+len(before), later+a, earlier+b
				if a > 0 {
					delaying++
				}
			}
		}
		d.printf("| %s | %d | %d | %d | %d | %d |\n", policy, slots, delaying, starts, later, earlier)
		if policy != queue.EASY && later > 0 {
			d.breaks("%d of %d slots delay a job with %s", delaying, slots, policy)
		}
	}
	return nil
}

// moved counts the jobs that start later than before, or never, and those that start earlier.
func moved(before, after []queue.Held) (later, earlier int) {
	for i := range before {
		switch a, b := before[i].Start, after[i].Start; {
		case b < 0 && a >= 0 || b > a && a >= 0:
			later++
		case b < a:
			earlier++
		}
	}
	return later, earlier
}
