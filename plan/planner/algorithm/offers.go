package algorithm

// Slots for the search. What the queue has room for is cut level by level (plan/sim/advertiser), and each level into
// walltimes. The search sees of each part only when workers can be there: it starts later by what a pilot takes to come
// up, and ends earlier by what it keeps of its walltime.

import (
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/availability"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/advertiser"
	"github.com/corral-pilot/corral/plan/slot"
)

// An offer is the slots of all sites, as the search reads them: without the time in which a pilot has no workers.
type offer struct {
	sites []slotted.Site
	slots [][]planner.Slot // :: site, slot → the whole of it
}

// mostParts is into how many walltimes a long slot is divided.
const mostParts = 24

// offered lists the slots of a problem. Of a queue that is not known there is one, from its wait on.
func offered(p plan.Problem) (o offer) {
	enough := horizon(p)
	for i := range p.Sites {
		s := &p.Sites[i]
		room, ahead := roomOf(s), enough
		for last := range room.Steps() { // the last step has no end
			ahead = last + enough
		}
		seen := slotted.Site{Offer: slot.Offer{Site: s.Name, Processors: min(s.Host.CPUs, s.CPUs)}}
		for _, t := range p.Work.Tasks {
			seen.Runtimes = append(seen.Runtimes, lasts(p, s, t))
		}
		var whole []planner.Slot
		for _, free := range advertiser.Levels(room, 0, hourly(s), ahead) {
			for _, part := range divided(s, free) {
				held := slot.Slot{Start: part.From + s.Overhead, Length: stays(p, s, part.To-part.From),
					Processors: part.CPUs, Price: free.Price, Divisible: true}
				if held.Length > 0 && part.CPUs > 0 {
					seen.Slots, whole = append(seen.Slots, held), append(whole, part)
				}
			}
		}
		o.sites, o.slots = append(o.sites, seen), append(o.slots, whole)
	}
	return o
}

// roomOf is the room of a site's queue, of which it gives no more than it does, or, where that is not known, what it
// gives after its wait.
func roomOf(s *plan.Site) *availability.Profile {
	if s.Room != nil {
		return s.Room.AtMost(s.CPUs)
	}
	room := availability.New(s.CPUs, 0)
	room.Take(0, s.Wait(plan.Shape{Hosts: 1, Host: s.Host, Walltime: s.Walltime}), s.CPUs)
	return room
}

// horizon is how far slots are looked at beyond all that queues have planned: twice as long as the work takes on the
// largest site, and its longest chain, but a day at least.
func horizon(p plan.Problem) time.Duration {
	most := 1
	for _, s := range p.Sites {
		most = max(most, min(s.CPUs, p.Work.MostCPUs()))
	}
	work := p.Work.CPUTime() / time.Duration(most)
	return max(24*time.Hour, (2 * (work + p.Work.Graph.CriticalPath(p.Work.Runtimes()))).Truncate(time.Millisecond))
}

// hourly is what a cpu costs for an hour; where nothing has a price it is a core-hour.
func hourly(s *plan.Site) cost.Money {
	_, money := s.Tariff.Bill(plan.Pilot{Hosts: 1, CPUs: 1, End: corral.Seconds(time.Hour)})
	return max(1, money)
}

// divided cuts a slot into walltimes.
func divided(s *plan.Site, free slot.Slot) (parts []planner.Slot) {
	for from := free.Start; from < free.End() && len(parts) < mostParts; from += s.Walltime {
		parts = append(parts, planner.Slot{Site: s.Name, Queue: s.Queue, CPUs: min(free.Processors, s.CPUs),
			Span: plan.Span{From: from, To: min(free.End(), from+s.Walltime)}})
	}
	return parts
}

// mostPlaced is how many tasks the search schedules in all of its trials together, at most: some ten seconds.
const mostPlaced = 4_000_000

// mostChoices is how many of the search's choices are made plans of, evenly from the soonest to the cheapest.
const mostChoices = 10

// search returns the choices of slots of which no other that the search has met is both sooner and cheaper, and all
// slots together.
func search(ctx context.Context, q Question) (choices [][]planner.Slot, err error) {
	o := offered(q.Model.Problem)
	s, err := slotted.New(slotted.Problem{Work: q.Model.Work, Sites: o.sites})
	if err != nil {
		return nil, err
	}
	options := moga.Options{Context: ctx, Seed: q.Options.Seed, Population: 100, Generations: 10}
	for len(q.Model.Work.Tasks)*options.Population*(options.Generations+1) > mostPlaced && options.Population > 10 {
		options.Population -= 10
	}
	front, err := moga.Search(moga.Slots(s), options)
	n := min(len(front), mostChoices)
	for i := range n {
		m := front[i*(len(front)-1)/max(1, n-1)]
		if made, ok := s.Plan(m.Chosen.Has); ok {
			choices = append(choices, o.used(made.Pieces))
		}
	}
	return narrowed(q.Model.Work, append(choices, o.whole(q.Model.Work.MostCPUs())...)), err
}

// How many choices of slots are made plans of, and of how many tasks these may be together.
const (
	mostNarrowed  = 30
	narrowedTasks = 60_000
)

// narrowed adds to choices of slots the same with half the cpus, a quarter of them and so on, as long as the widest
// task fits: what a few wide slots are for whoever is in a hurry, narrow ones are for whoever counts cpu-hours.
func narrowed(w plan.Work, choices [][]planner.Slot) [][]planner.Slot {
	widest := 1
	for _, t := range w.Tasks {
		widest = max(widest, t.Needs.CPUs)
	}
	most := max(len(choices), min(mostNarrowed, narrowedTasks/len(w.Tasks)))
	for part, given := 2, choices; ; part *= 2 {
		added := false
		for _, c := range given {
			c = slices.Clone(c)
			for i := range c {
				c[i].CPUs /= part
			}
			c = slices.DeleteFunc(c, func(s planner.Slot) bool { return s.CPUs < widest })
			if len(c) == 0 {
				continue
			}
			if added = true; len(choices) >= most {
				return choices
			}
			choices = append(choices, c)
		}
		if !added {
			return choices
		}
	}
}

// whole are all slots together, none wider than what is of use, and those of each queue alone: limits of a site hold
// for its queues together, whose slots do not know of each other, and one site may be the cheapest by itself.
func (o offer) whole(most int) (choices [][]planner.Slot) {
	var all []planner.Slot
	for _, slots := range o.slots {
		for i := range slots {
			slots[i].CPUs = min(slots[i].CPUs, most)
		}
		if all = append(all, slots...); len(slots) > 0 && len(o.slots) > 1 {
			choices = append(choices, slots)
		}
	}
	return append([][]planner.Slot{all}, choices...)
}

// used are the slots of which there are pieces, each twice as wide as those are together at most: the list schedule
// puts tasks where they fit first, and not where the search has put them.
func (o offer) used(pieces []slotted.Piece) (all []planner.Slot) {
	for len(pieces) > 0 { // they come by site and slot
		site, number, n := pieces[0].Site, pieces[0].Slot, 0
		for n < len(pieces) && pieces[n].Site == site && pieces[n].Slot == number {
			n++
		}
		part := o.slots[site][number]
		part.CPUs = min(part.CPUs, 2*atOnce(pieces[:n]))
		all, pieces = append(all, part), pieces[n:]
	}
	return all
}

// atOnce is how many processors pieces have together at most, which come in the order of their starts.
func atOnce(pieces []slotted.Piece) (most int) {
	ends := heap.New(func(a, b slot.Piece) bool { return a.End() < b.End() })
	held := 0
	for _, p := range pieces {
		for ends.Len() > 0 && ends.First().End() <= p.Start {
			held -= ends.Pop().Processors
		}
		held += p.Processors
		ends.Push(p.Piece)
		most = max(most, held)
	}
	return most
}
