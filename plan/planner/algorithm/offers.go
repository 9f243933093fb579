package algorithm

// Slots for the search. The room of a queue is cut into levels (plan/sim/market), and each level into walltimes.
// The search sees only the part of a slot in which workers can be present: this part starts later by the pilot's
// start-up time, and ends earlier by its margin.

import (
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/slot"
)

// An offer holds the slots of all sites as the search sees them: without the time in which a pilot has no workers.
type offer struct {
	sites []slotted.Site
	slots [][]planner.Slot // :: site, slot → the whole slot
}

// mostParts is the maximum number of walltimes into which a slot is divided.
const mostParts = 24

// offered lists the slots of a problem from the given time on. A queue that is not known has a single slot, which
// begins after the queue's wait.
func offered(p plan.Problem, from time.Duration) (o offer) {
	enough, gpus := horizon(p), needGPUs(p.Work)
	for i := range p.Sites {
		s := &p.Sites[i]
		room, ahead := roomOf(s, from), from+enough
		for last := range room.Steps() { // the last step has no end
			ahead = max(last, from) + enough
		}
		seen := slotted.Site{Offer: slot.Offer{Site: s.Name, Processors: min(s.Host.CPUs, s.CPUs)}}
		for _, t := range p.Work.Tasks {
			seen.Runtimes = append(seen.Runtimes, lasts(p, s, t))
		}
		var whole []planner.Slot
		for _, free := range market.Levels(room, from, hourly(s, gpus), ahead) {
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

// roomOf returns the room of a site's queue, limited to the site's maximum of cpus. If the room is not known, that
// maximum is assumed to be free after the queue's wait, which begins at the given time.
func roomOf(s *plan.Site, from time.Duration) *slot.Profile {
	if s.Room != nil {
		return s.Room.AtMost(s.CPUs)
	}
	room := slot.NewProfile(s.CPUs, 0)
	room.Take(0, from+s.Wait(plan.Shape{Hosts: 1, Host: s.Host, Walltime: s.Walltime}), s.CPUs)
	return room
}

// horizon returns how far slots extend beyond the last planned change of the queues: twice the sum of the time for all
// work on the largest site and the time of the longest chain, but at least a day.
func horizon(p plan.Problem) time.Duration {
	most := 1
	for _, s := range p.Sites {
		most = max(most, min(s.CPUs, p.Work.MostCPUs()))
	}
	work := p.Work.CPUTime() / time.Duration(most)
	return max(24*time.Hour, (2 * (work + p.Work.Graph.CriticalPath(p.Work.Runtimes()))).Truncate(time.Millisecond))
}

// hourly returns the price of a cpu-hour; for sites without prices it is a core-hour. A price that weighs resources
// includes the cpu's share of the host's memory and, if tasks need GPUs, of these.
func hourly(s *plan.Site, gpus bool) cost.Money {
	q := plan.Pilot{Shape: corral.Shape{Hosts: 1, CPUs: 1}, End: corral.Seconds(time.Hour)}
	if s.Tariff.Weighs() && s.Host.CPUs < plan.Unlimited {
		q.CPUs = max(1, s.Host.CPUs)
		if s.Host.MemoryMiB < plan.Unlimited {
			q.MemoryMiB = s.Host.MemoryMiB
		}
		if gpus && s.Host.GPUs < plan.Unlimited {
			q.GPUs = s.Host.GPUs
		}
	}
	_, money := s.Tariff.Bill(q)
	return max(1, money/cost.Money(q.CPUs))
}

// needGPUs reports whether any task needs GPUs.
func needGPUs(w plan.Work) bool {
	return slices.ContainsFunc(w.Tasks, func(t plan.Task) bool { return t.Needs.GPUs > 0 })
}

// divided cuts a slot into walltimes.
func divided(s *plan.Site, free slot.Slot) (parts []planner.Slot) {
	for from := free.Start; from < free.End() && len(parts) < mostParts; from += s.Walltime {
		parts = append(parts, planner.Slot{Site: s.Name, Queue: s.Queue, CPUs: min(free.Processors, s.CPUs),
			Span: plan.Span{From: from, To: min(free.End(), from+s.Walltime)}})
	}
	return parts
}

// mostPlaced is the maximum number of tasks that the search schedules in all its trials together; scheduling that many
// takes about ten seconds.
const mostPlaced = 4_000_000

// mostChoices is the maximum number of the search's choices for which plans are made, evenly spaced from the fastest to
// the cheapest.
const mostChoices = 10

// search returns the choices of slots that are not dominated in both makespan and cost by other choices that the search
// evaluated. It adds the choice of all slots together, and narrower versions of all choices.
func search(ctx context.Context, q Question) (choices [][]planner.Slot, err error) {
	o := offered(q.Model.Problem, time.Duration(q.Goal.NotBefore))
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

// mostNarrowed is the maximum number of choices for which plans are made, and narrowedTasks is the maximum of their
// tasks in total.
const (
	mostNarrowed  = 30
	narrowedTasks = 60_000
)

// narrowed adds the same choices with half the cpus, a quarter of them and so on, as long as the widest task fits: a
// few wide slots suit goals with little time, and narrow slots suit goals with little money.
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

// whole returns all slots together, none wider than useful, and the slots of each queue alone. The latter are needed
// because a site's limits apply to its queues together, whose slots are independent, and because a single site may be
// the cheapest.
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

// used returns the slots of the pieces, each twice as wide as its pieces at their maximum, because the list schedule
// places tasks by first fit, not where the search placed them.
func (o offer) used(pieces []slotted.Piece) (all []planner.Slot) {
	for len(pieces) > 0 { // they are sorted by site and slot
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

// atOnce returns the maximum number of processors that pieces use at once; the pieces must be sorted by start.
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
