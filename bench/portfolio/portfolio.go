// Package portfolio compares the ways in which a workflow can get processors at a site, by simulating each of them in
// the known state of the site's queue, and chooses one. The ways:
//
//	jobs    each task is a job of its own (bench/besteffort)
//	pilot   one pilot of some width, submitted now, runs all tasks
//	slots   parts of the advertised slots are reserved (plan/planner/moga)
//	prices  time for each task is reserved at a price (plan/planner/greedy)
//
// The first two need only a queue; the others need a site that supports reservations. The simulation contains only the
// jobs in the queue, not those that arrive later. Therefore the forecast for jobs is too optimistic. The forecast for a
// pilot is reliable, because later jobs do not take the time planned for it, unless jobs end before their requested
// time.
//
// The user weighs cost and makespan by α, both relative to those of jobs: J = α × cost ÷ cost of jobs + (1 − α) ×
// makespan ÷ makespan of jobs. The way with the lowest J is chosen.
package portfolio

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/besteffort"
	"github.com/corral-pilot/corral/bench/greedy"
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Way is a method of getting processors.
type Way string

// The ways.
const (
	Jobs   Way = "jobs"
	Pilot  Way = "pilot"
	Slots  Way = "slots"
	Prices Way = "prices"
)

// A Candidate is a way with its expected results.
type Candidate struct {
	Way        Way
	cost.Point               // the makespan counts from now
	Width      int           // processors of the pilot
	Length     time.Duration // how long the pilot is held
}

// A Site is a site that provides processors.
type Site struct {
	Queue *queue.Queue  // in its current state
	Price cost.Money    // per processor and hour
	Job   time.Duration // time that a job needs in addition to its task, until its end is noticed
}

// Candidates simulates all ways at a site; the first result is jobs. α selects among the plans for slots and prices.
// Errors are those of slotted.New, for example if a task is wider than the site.
func Candidates(w plan.Work, at Site, alpha plan.Share, o moga.Options) ([]Candidate, error) {
	q, price := at.Queue, at.Price
	offers := market.Advertise("site", q, price)
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
	if points := front.Points(); len(points) > 0 {
		all = append(all, Candidate{Way: Slots, Point: points[greedy.Choose(points, alpha)]})
	}
	seller := market.New("site", q, price)
	if sold, err := greedy.Make(p, []market.Seller{seller}, q.Now(), alpha); err == nil {
		all = append(all, Candidate{Way: Prices, Point: sold.Point})
	}
	return all, nil
}

// Pilots returns pilots with the width of the widest task, twice that, and so on up to the machine's size. Each pilot
// is held for as long as the workflow takes to run in it. A pilot waits until it fits in addition to all planned jobs.
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

// within returns how long a workflow takes on the given number of processors of its own.
func within(w plan.Work, processors int) (time.Duration, error) {
	all := slot.Slot{Length: time.Hour, Processors: processors, Divisible: true, Extensible: true}
	s, err := slotted.New(slotted.Problem{Work: w, Sites: []slotted.Site{
		{Offer: slot.Offer{Site: "pilot", Processors: processors, Slots: []slot.Slot{all}}}}})
	if err != nil {
		return 0, err
	}
	point, ok := s.Evaluator().Point(func(int) bool { return true })
	if !ok {
		return 0, corral.Errorf(corral.Unsatisfiable, "a task does not fit a pilot of %d processors", processors)
	}
	return point.Makespan, nil
}

// Weigh returns J of a point relative to that of jobs, whose values must not be 0.
func Weigh(p, jobs cost.Point, alpha plan.Share) float64 {
	a := float64(alpha) / float64(plan.Whole)
	return a*float64(p.Cost)/float64(jobs.Cost) + (1-a)*float64(p.Makespan)/float64(jobs.Makespan)
}

// Choose returns the candidate with the lowest J relative to jobs. Ties go to the fastest, then to the first; but a
// pilot is preferred to jobs with the same values, because a batch system has an overhead for each job. all must not be
// empty.
func Choose(all []Candidate, jobs cost.Point, alpha plan.Share) Candidate {
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
