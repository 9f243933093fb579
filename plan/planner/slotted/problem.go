package slotted

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Problem is a workflow and the offers of sites. Only the tasks' cpus are considered, not their memory and other
// needs.
type Problem struct {
	Work  plan.Work
	Sites []Site // by preference in case of a tie

	// Transfer returns the time to transfer a parent's data to a child at another site; nil: transfers take no time.
	Transfer func(parent, child int) time.Duration
}

// A Site is the offer of one site. The instant of the offers, which must be the same for all sites, is the beginning of
// the plan.
type Site struct {
	slot.Offer
	Runtimes []time.Duration // runtimes of the tasks at this site; nil: the same as in the workflow
}

// runtime returns the runtime of a task at the site.
func (s *Site) runtime(t *plan.Task, i int) time.Duration {
	if s.Runtimes != nil {
		return s.Runtimes[i]
	}
	return t.Runtime
}

// A Scheduler schedules one problem on any choice of its slots. It is immutable, and safe for concurrent use.
type Scheduler struct {
	problem Problem
	order   []int // task indices by rank
	first   []int // :: site → number of its first slot among all; the last entry is the total
}

// Ask requests the offers of sources in order, and returns them as the sites of a problem, or the first error.
func Ask(sources ...slot.Source) ([]Site, error) {
	sites := make([]Site, len(sources))
	for i, s := range sources {
		o, err := s.Offer()
		if err != nil {
			return nil, err
		}
		sites[i].Offer = o
	}
	return sites, nil
}

// New returns the scheduler of a problem. The error is of kind Invalid if a slot is invalid or the offers are at
// different instants, and of kind Unsatisfiable if there is no slot or a task is wider than every site.
func New(p Problem) (*Scheduler, error) {
	s := &Scheduler{problem: p, first: []int{0}}
	widest := 0
	for _, site := range p.Sites {
		if site.At != p.Sites[0].At {
			return nil, corral.Errorf(corral.Invalid, "the offers of site %s at %s and site %s at %s are not at the "+
				"same instant", p.Sites[0].Site, p.Sites[0].At, site.Site, site.At)
		}
		for i, one := range site.Slots {
			if err := one.Check(); err != nil {
				return nil, corral.Errorf(corral.Invalid, "site %s, slot %d: %w", site.Site, i+1, err)
			}
		}
		widest = max(widest, site.Processors)
		s.first = append(s.first, s.Slots()+len(site.Slots))
	}
	if s.Slots() == 0 {
		return nil, corral.Errorf(corral.Unsatisfiable, "no site offers a slot")
	}
	for _, t := range p.Work.Tasks {
		if t.Needs.CPUs > widest {
			return nil, corral.Errorf(corral.Unsatisfiable,
				"task %.80s needs %d processors, but the largest site has %d", t.ID, t.Needs.CPUs, widest)
		}
	}
	s.order = Order(p)
	return s, nil
}

// Slots returns the total number of slots, which are numbered from 0, in the order of the sites.
func (s *Scheduler) Slots() int { return s.first[len(s.first)-1] }

// Slot returns slot i.
func (s *Scheduler) Slot(i int) slot.Slot {
	site := s.siteOf(i)
	return s.problem.Sites[site].Slots[i-s.first[site]]
}

// siteOf returns the site of a slot.
func (s *Scheduler) siteOf(i int) int {
	site, exact := slices.BinarySearch(s.first, i)
	if !exact {
		return site - 1
	}
	for s.first[site+1] == i { // skip sites without slots
		site++
	}
	return site
}

// LeastCost returns the cost of all tasks' processor time at the lowest price offered: if sites are alike and slots
// have no fees, no plan costs less, and best effort costs exactly this amount at that price (Singh 2008, equation 16).
func (s *Scheduler) LeastCost() cost.Money {
	least := s.Slot(0).Price
	for i := range s.Slots() {
		least = min(least, s.Slot(i).Price)
	}
	return Work(s.problem.Work, least)
}

// Work returns the cost of all tasks' processor time at a price per hour; it saturates at the maximum.
func Work(w plan.Work, price cost.Money) cost.Money {
	var work int64
	for _, t := range w.Tasks {
		high, low := bits.Mul64(uint64(t.Needs.CPUs), uint64(t.Runtime.Milliseconds()))
		if high > 0 || low > uint64(math.MaxInt64-work) {
			return math.MaxInt64
		}
		work += int64(low)
	}
	return slot.Charge(price, work)
}

// Order returns the tasks by descending upward rank: a task's mean runtime over the sites plus the longest path to the
// end, with the mean transfer times (Singh 2008, equation 7). Equal ranks are in topological order, so that tasks
// without a runtime come after their parents.
func Order(p Problem) []int {
	mean := make([]time.Duration, len(p.Work.Tasks))
	for i := range mean {
		mean[i] = p.mean(i)
	}
	transfer := p.Transfer
	if len(p.Sites) < 2 {
		transfer = nil
	}
	return p.Work.Graph.ByRank(mean, transfer)
}

// plus returns the sum of two times; it saturates at the maximum, so that ranks keep their order.
func plus(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// mean returns the mean runtime of a task over the sites.
func (p Problem) mean(i int) time.Duration {
	if len(p.Sites) == 0 {
		return p.Work.Tasks[i].Runtime
	}
	var sum time.Duration
	for s := range p.Sites {
		sum += p.Sites[s].runtime(&p.Work.Tasks[i], i) / time.Duration(len(p.Sites))
	}
	return sum
}
