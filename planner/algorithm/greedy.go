package algorithm

// The greedy algorithm looks at a place for one stage at a time, and never goes back: what a wide pilot for this stage
// does to the start of the next it does not ask. So it is quick, and its plans have few pilots.

import (
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/cost"
	"github.com/corral-pilot/corral/ensemble"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner"
	"github.com/corral-pilot/corral/planner/greedy"
	"github.com/corral-pilot/corral/planner/slotted"
	"github.com/corral-pilot/corral/sim/availability"
	"github.com/corral-pilot/corral/slot"
)

// A stage is levels of a graph, one after another, that are about as wide as each other.
type stage struct {
	work  plan.Work
	needs corral.Resources // that its tasks need at most, in each respect
	most  int              // cpus that are of use at once
	takes map[int]time.Duration
}

// stages cuts a workflow into stages, as it runs at a site: a level belongs to the one before it if the powers of two
// of their widths are the same.
func stages(p plan.Problem, s *plan.Site) (all []*stage) {
	of := p.Work.Graph.Levels()
	cpus := make([]int, len(p.Work.Graph.LevelSizes()))
	for i, t := range p.Work.Tasks {
		cpus[of[i]] += max(1, t.Needs.CPUs)
	}
	from := 0
	for k := range cpus {
		if k+1 < len(cpus) && bits.Len(uint(cpus[k])) == bits.Len(uint(cpus[k+1])) {
			continue
		}
		work, _ := p.Work.Part(func(i int) bool { return of[i] >= from && of[i] <= k })
		st := &stage{work: work, takes: map[int]time.Duration{}, most: slices.Max(cpus[from : k+1])}
		for i := range work.Tasks {
			t := &work.Tasks[i]
			t.Runtime = lasts(p, s, *t)
			st.needs = st.needs.Most(t.Needs)
		}
		st.needs.CPUs = max(1, st.needs.CPUs)
		all, from = append(all, st), k+1
	}
	return all
}

// on is how long a stage takes on so many cpus that it has for itself, and as much more as its longest task, since a
// pilot has its cpus in hosts, and takes tasks in another order. What it does not need it gives back. ok is false if a
// task has no place there.
func (s *stage) on(cpus int) (takes time.Duration, ok bool) {
	if d, known := s.takes[cpus]; known {
		return d, d >= 0
	}
	alone := slot.Slot{Length: time.Hour, Processors: cpus, Divisible: true, Extensible: true}
	one, err := slotted.New(slotted.Problem{Work: s.work, Sites: []slotted.Site{
		{Offer: slot.Offer{Processors: cpus, Slots: []slot.Slot{alone}}}}})
	if err == nil {
		var point cost.Point
		if point, ok = one.Evaluator().Point(func(int) bool { return true }); ok {
			takes = point.Makespan + slices.Max(s.work.Runtimes())
		}
	}
	if s.takes[cpus] = takes; !ok {
		s.takes[cpus] = -1
	}
	return takes, ok
}

// weighings are the trade-offs by which the greedy algorithm makes choices. Of these the goal has the last word.
var weighings = []ensemble.Share{0, ensemble.Whole / 4, ensemble.Whole / 2, ensemble.Whole * 3 / 4, ensemble.Whole}

// greedily returns a choice of slots for each weighing with which every stage has found a place.
func greedily(q Question) (choices [][]planner.Slot) {
	p := q.Model.Problem
	parts := make([][]*stage, len(p.Sites)) // :: site, stage
	for i := range p.Sites {
		parts[i] = stages(p, &p.Sites[i])
	}
	for _, alpha := range weighings {
		if slots, ok := placed(p, parts, alpha); ok {
			choices = append(choices, slots)
		}
	}
	return choices
}

// placed gives each stage in turn the place that weighs least: of all sites, and of widths that double, the earliest at
// which the pilot's workers are there when the stage before has ended.
func placed(p plan.Problem, parts [][]*stage, alpha ensemble.Share) (all []planner.Slot, ok bool) {
	rooms := make([]*availability.Profile, len(p.Sites))
	for i := range p.Sites {
		rooms[i] = roomOf(&p.Sites[i])
	}
	var ready time.Duration
	for k := range parts[0] {
		var slots []planner.Slot
		var points []cost.Point
		var from []int // :: slot → site
		for i := range p.Sites {
			s, st := &p.Sites[i], parts[i][k]
			for n := st.needs.CPUs; n < 2*st.most && st.needs.FitIn(s.Host); n *= 2 {
				cpus := min(n, st.most)
				takes, can := st.on(cpus)
				length := takes + held(p, s)
				at, fits := rooms[i].Fit(max(0, ready-s.Overhead), length, cpus)
				if !can || !fits || length > s.Walltime {
					continue
				}
				slots = append(slots, planner.Slot{Site: s.Name, Queue: s.Queue, CPUs: cpus,
					Span: plan.Span{From: at, To: at + length}})
				points = append(points, cost.Point{Makespan: at + length,
					Cost: slot.Charge(hourly(s), int64(cpus)*length.Milliseconds())})
				from = append(from, i)
			}
		}
		if len(slots) == 0 {
			return nil, false
		}
		best := greedy.Choose(points, alpha)
		one := slots[best]
		rooms[from[best]].Take(one.From, one.To, one.CPUs)
		ready = one.To - p.Sites[from[best]].Margin - p.Cluster.Leave
		all = joined(all, one, p.Sites[from[best]].Walltime)
	}
	return all, true
}

// held is for how long a pilot is there without taking tasks.
func held(p plan.Problem, s *plan.Site) time.Duration { return -stays(p, s, 0) }

// joined adds a slot, to the last one if that is as wide, reaches to it, and both are no longer than a walltime.
func joined(all []planner.Slot, one planner.Slot, walltime time.Duration) []planner.Slot {
	if n := len(all); n > 0 {
		last := &all[n-1]
		if last.Site == one.Site && last.Queue == one.Queue && last.CPUs == one.CPUs && last.To == one.From &&
			one.To-last.From <= walltime {
			last.To = one.To
			return all
		}
	}
	return append(all, one)
}
