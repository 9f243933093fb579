package slotted

import (
	"time"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Plan is a set of reservations with the schedule that needs them.
type Plan struct {
	cost.Point           // the makespan counts from the offers' instant
	Pieces     []Piece   // sorted by site, slot and start
	Schedule   []Running // for each task
}

// A Piece is a part of a slot of a site.
type Piece struct {
	Site int
	slot.Piece
}

// A Running is the site and the time of a task, on the time scale of the offers.
type Running struct {
	Site       int
	Start, End time.Duration
}

// An Evaluator schedules one choice after another. It is not safe for concurrent use.
type Evaluator struct {
	*Scheduler
	bins []*slot.List // per site
	runs []Running    // per task
}

// Evaluator returns a new evaluator.
func (s *Scheduler) Evaluator() *Evaluator {
	e := &Evaluator{Scheduler: s, runs: make([]Running, len(s.problem.Work.Tasks))}
	for i := range s.problem.Sites {
		e.bins = append(e.bins, slot.NewList(s.problem.Sites[i].Slots))
	}
	return e
}

// Point returns the cost and the makespan of a choice of slots. ok is false if there is no place for a task (Singh
// 2008, section 4.2: the makespan is infinite).
func (e *Evaluator) Point(chosen func(slot int) bool) (p cost.Point, ok bool) {
	for i, bin := range e.bins {
		bin.Reset(func(j int) bool { return chosen(e.first[i] + j) })
	}
	if !e.schedule() {
		return cost.Point{}, false
	}
	return cost.Point{Makespan: e.makespan(), Cost: e.cost()}, true
}

// Plan returns the plan of a choice of slots; ok has the same meaning as in Point.
func (s *Scheduler) Plan(chosen func(slot int) bool) (p Plan, ok bool) {
	e := s.Evaluator()
	for _, bin := range e.bins {
		bin.Record()
	}
	if p.Point, ok = e.Point(chosen); !ok {
		return Plan{}, false
	}
	p.Schedule = e.runs
	for i, bin := range e.bins {
		for _, piece := range bin.Needed() {
			p.Pieces = append(p.Pieces, Piece{i, piece})
		}
	}
	return p, true
}

// origin returns the instant of the offers.
func (s *Scheduler) origin() time.Duration { return s.problem.Sites[0].At }

// schedule places each task, by rank, at the site where it ends first, or at the first site in case of a tie. HEFT
// compares ends because the speeds of sites may differ; the thesis, whose sites are alike, compares starts.
func (e *Evaluator) schedule() bool {
	tasks := e.problem.Work.Tasks
	for _, i := range e.order {
		n, best, end := tasks[i].Needs.CPUs, -1, slot.Forever
		for site, bin := range e.bins {
			length := e.problem.Sites[site].runtime(&tasks[i], i)
			if n > e.problem.Sites[site].Processors {
				continue
			}
			start, ok := bin.Find(e.earliest(i, site), length, n)
			if ok && start+length < end {
				best, end = site, start+length
				e.runs[i] = Running{site, start, end}
			}
		}
		if best < 0 {
			return false
		}
		e.bins[best].Take()
	}
	return true
}

// earliest returns the time by which all parents of a task have ended and their data has arrived at a site.
func (e *Evaluator) earliest(task, site int) time.Duration {
	at := e.origin()
	for _, p := range e.problem.Work.Graph.Parents(task) {
		end := e.runs[p].End
		if e.runs[p].Site != site && e.problem.Transfer != nil {
			end = plus(end, e.problem.Transfer(p, task))
		}
		at = max(at, end)
	}
	return at
}

func (e *Evaluator) makespan() time.Duration {
	end := e.origin()
	for _, r := range e.runs {
		end = max(end, r.End)
	}
	return end - e.origin()
}

func (e *Evaluator) cost() cost.Money { return slot.Cost(e.bins...) }
