// Package portfolio compares the ways in which a workflow can get processors at a site, by simulating each on what is
// known of the site's queue, and chooses one. The ways:
//
//	jobs    each task is a job of its own (plan/planner/besteffort)
//	pilot   one pilot of a width, submitted now, in which all tasks run
//	slots   parts of what the site advertises are reserved (plan/planner/moga)
//	prices  each task's time is reserved at a price (plan/planner/greedy)
//
// The first two take a queue alone; the others a site that reserves. What is simulated is what the queue has by now:
// whom nobody knows of yet comes later. So a forecast of jobs is too good, and one of a pilot holds, since what is
// planned for it is not taken by those who come after it, as long as nobody asks for less time than he takes.
//
// A user weighs cost and makespan by α, both as parts of what jobs come to: J = α × cost ÷ cost of jobs + (1 − α) ×
// makespan ÷ makespan of jobs. The least J is chosen.
package portfolio

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/besteffort"
	"github.com/corral-pilot/corral/plan/planner/greedy"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/advertiser"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Way is one of those to get processors.
type Way string

// The ways.
const (
	Jobs   Way = "jobs"
	Pilot  Way = "pilot"
	Slots  Way = "slots"
	Prices Way = "prices"
)

// A Candidate is a way, and what it is expected to come to.
type Candidate struct {
	Way        Way
	cost.Point               // the makespan counts from now
	Width      int           // of a pilot: processors
	Length     time.Duration // for how long it is held
}

// A Site is where processors are to be had.
type Site struct {
	Queue *queue.Queue  // as it is by now
	Price cost.Money    // of a processor for an hour
	Job   time.Duration // that a job takes beside its task, from when there is room for it until the end is seen
}

// Candidates simulates all ways at a site; the first is jobs. α is what slots and prices are chosen by. Errors are
// those of slotted.New: a task that is wider than the site, say.
func Candidates(w plan.Work, at Site, alpha ensemble.Share, o moga.Options) ([]Candidate, error) {
	q, price := at.Queue, at.Price
	offers := &advertiser.Site{Name: "site", Queue: q, Price: price}
	sites, err := slotted.Ask(offers)
	if err != nil {
		return nil, err
	}
	p := slotted.Problem{Work: w, Sites: sites}
	scheduler, err := slotted.New(p)
	if err != nil {
		return nil, err
	}
	jobs := Candidate{Way: Jobs, Point: cost.Point{Cost: slotted.Work(w, price)}}
	each := p
	each.Work.Tasks = slices.Clone(w.Tasks)
	for i := range each.Work.Tasks {
		each.Work.Task(i).Runtime += at.Job
	}
	if jobs.Makespan, err = besteffort.Run(each, []*queue.Queue{queue.Alone(q)}); err != nil {
		return nil, err
	}
	pilots, err := Pilots(w, q, price)
	if err != nil {
		return nil, err
	}
	all := append([]Candidate{jobs}, pilots...)
	front, err := moga.Search(moga.Slots(scheduler), o)
	if err != nil {
		return nil, err
	}
	if m, err := front.Choose(alpha, moga.Limits{}); err == nil {
		all = append(all, Candidate{Way: Slots, Point: m.Point})
	}
	seller := &market.Site{Name: "site", Queue: q, Price: price}
	if sold, err := greedy.Make(p, []slot.Market{seller}, q.Now(), alpha); err == nil {
		all = append(all, Candidate{Way: Prices, Point: sold.Point})
	}
	return all, nil
}

// Pilots are pilots of the width of the widest task, of twice that, and so on up to the machine, each for as long as
// the workflow takes in it. A pilot waits until it fits beside all that is planned.
func Pilots(w plan.Work, q *queue.Queue, price cost.Money) (all []Candidate, err error) {
	widest := 1
	for _, t := range w.Tasks {
		widest = max(widest, t.Needs.CPUs)
	}
	free := queue.Unplanned(q)
	for n := widest; n <= free.Processors(); n *= 2 {
		length, err := within(w, n)
		if err != nil {
			return nil, err
		}
		start, ok := free.Fit(q.Now(), length, n)
		if !ok || length == 0 {
			continue
		}
		all = append(all, Candidate{Way: Pilot, Width: n, Length: length, Point: cost.Point{
			Makespan: start - q.Now() + length, Cost: slot.Charge(price, int64(n)*length.Milliseconds())}})
	}
	return all, nil
}

// within is how long a workflow takes on so many processors that it has for itself.
func within(w plan.Work, processors int) (time.Duration, error) {
	all := slot.Slot{Length: time.Hour, Processors: processors, Divisible: true, Extensible: true}
	s, err := slotted.New(slotted.Problem{Work: w, Sites: []slotted.Site{
		{Offer: slot.Offer{Site: "pilot", Processors: processors, Slots: []slot.Slot{all}}}}})
	if err != nil {
		return 0, err
	}
	point, ok := s.Evaluator().Point(func(int) bool { return true })
	if !ok {
		return 0, corral.Errorf(corral.Unsatisfiable, "a task finds no place in a pilot of %d processors", processors)
	}
	return point.Makespan, nil
}

// Weigh is J of a point beside that of jobs. What jobs come to must not be nothing.
func Weigh(p, jobs cost.Point, alpha ensemble.Share) float64 {
	a := float64(alpha) / float64(ensemble.Whole)
	return a*float64(p.Cost)/float64(jobs.Cost) + (1-a)*float64(p.Makespan)/float64(jobs.Makespan)
}

// Choose returns the candidate with the least J beside what jobs come to, of equal ones the fastest, and the first of
// those; but a pilot rather than jobs that are no better, since a batch system takes its time for each of them. all has
// one at least.
func Choose(all []Candidate, jobs cost.Point, alpha ensemble.Share) Candidate {
	best, least := all[0], Weigh(all[0].Point, jobs, alpha)
	for _, c := range all[1:] {
		j := Weigh(c.Point, jobs, alpha)
		easier := best.Way == Jobs && c.Way == Pilot && c.Makespan == best.Makespan
		if j < least || j == least && (easier || c.Makespan < best.Makespan) {
			best, least = c, j
		}
	}
	return best
}
