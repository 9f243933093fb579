package algorithm

// The greedy algorithm places one stage at a time and never revises a placement, even if a wide pilot for one stage
// delays the start of the next. It is therefore fast, and its plans have few pilots.

import (
	"math/bits"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A stage is a sequence of consecutive levels of a graph with similar widths.
type stage struct {
	work  plan.Work
	needs corral.Resources // maximum of its tasks' needs in each component
	most  int              // maximum number of cpus that are useful at once
	takes map[int]time.Duration
}

// stages cuts a workflow into stages for each site. A level joins the previous one if their widths round to the same
// power of two, or if the previous stage takes less than shortestStage at the first site. A static plan has one stage.
func stages(p plan.Problem, static bool) [][]*stage {
	parts := make([][]*stage, len(p.Sites)) // :: site → stages
	cpus := make([]int, len(p.Work.Graph.LevelSizes()))
	for i, level := range p.Work.Graph.Levels() {
		cpus[level] += max(1, p.Work.Task(i).Needs.CPUs)
	}
	from := 0
	for k := range cpus {
		last := k+1 == len(cpus)
		if static && !last || !last && bits.Len(uint(cpus[k])) == bits.Len(uint(cpus[k+1])) {
			continue
		}
		first := stageOf(p, &p.Sites[0], from, k)
		first.most = slices.Max(cpus[from : k+1])
		if takes, ok := first.on(first.most); !last && ok && takes < shortestStage {
			continue
		}
		parts[0] = append(parts[0], first)
		for i := 1; i < len(parts); i++ {
			st := stageOf(p, &p.Sites[i], from, k)
			st.most = first.most
			parts[i] = append(parts[i], st)
		}
		from = k + 1
	}
	return parts
}

// shortestStage is the minimum duration of a stage that has a successor, because pilots have no shorter walltimes.
const shortestStage = 10 * time.Minute

// stageOf returns the stage of the given levels at a site.
func stageOf(p plan.Problem, s *plan.Site, from, to int) *stage {
	of := p.Work.Graph.Levels()
	st := &stage{takes: map[int]time.Duration{}}
	st.work, _ = p.Work.Part(func(i int) bool { return of[i] >= from && of[i] <= to })
	for i := range st.work.Tasks {
		t := &st.work.Tasks[i]
		t.Runtime = lasts(p, s, *t)
		st.needs = st.needs.Most(t.Needs)
	}
	st.needs.CPUs = max(1, st.needs.CPUs)
	return st
}

// on returns how long a stage takes on its own cpus, plus the duration of its longest task as a reserve: a pilot's cpus
// are divided into hosts, and tasks run in another order. Unused time is released. ok is false if a task does not fit.
func (s *stage) on(cpus int) (takes time.Duration, ok bool) {
	if d, known := s.takes[cpus]; known {
		return d, d >= 0
	}
	needs := make([]int, len(s.work.Tasks))
	for i, t := range s.work.Tasks {
		needs[i] = max(1, t.Needs.CPUs)
	}
	runtimes := s.work.Runtimes()
	if takes, ok = dag.ListSchedule(s.work.Graph, runtimes, needs, cpus); ok {
		takes += slices.Max(runtimes)
	}
	if s.takes[cpus] = takes; !ok {
		s.takes[cpus] = -1
	}
	return takes, ok
}

// On a machine with room for only one stage at a time walltimes matter: the place of the next stage begins after the
// previous walltime, even if the previous stage ends early. Therefore short stages are joined, and the replay shows
// whether this pays off.

// weighings lists the trade-offs with which the greedy algorithm makes choices. The goal decides among the results.
var weighings = []plan.Share{0, plan.Whole / 4, plan.Whole / 2, plan.Whole * 3 / 4, plan.Whole}

// greedily returns a choice of slots for each trade-off with which every stage has a place.
func greedily(q Question) (choices [][]planner.Slot) {
	p := q.Model.Problem
	parts := stages(p, q.Goal.Static)
	for _, alpha := range weighings {
		if slots, ok := placed(p, parts, alpha, time.Duration(q.Goal.NotBefore)); ok {
			choices = append(choices, slots)
		}
	}
	return choices
}

// placed assigns to each stage in turn the place with the lowest weight. It considers all sites and doubling widths,
// and for each the earliest place, not before the given time, at which the pilot's workers are ready after the previous
// stage.
func placed(p plan.Problem, parts [][]*stage, alpha plan.Share, notBefore time.Duration) (all []planner.Slot,
	ok bool) {
	rooms, gpus := make([]*slot.Profile, len(p.Sites)), needGPUs(p.Work)
	for i := range p.Sites {
		rooms[i] = roomOf(&p.Sites[i], notBefore)
	}
	var ready time.Duration
	for k := range parts[0] {
		var slots []planner.Slot
		var points []plan.Candidate
		var from []int // :: slot → site
		for i := range p.Sites {
			s, st := &p.Sites[i], parts[i][k]
			for n := st.needs.CPUs; n < 2*st.most && st.needs.FitIn(s.Host); n *= 2 {
				cpus := min(n, st.most)
				takes, can := st.on(cpus)
				length := asked(takes+held(p, s), s.Walltime)
				at, fits := rooms[i].Fit(max(notBefore, ready-s.Overhead), length, cpus)
				if !can || !fits || length > s.Walltime {
					continue
				}
				slots = append(slots, planner.Slot{Site: s.Name, Queue: s.Queue, CPUs: cpus,
					Span: plan.Span{From: at, To: at + length}})
				points = append(points, plan.Candidate{CPUs: cpus, Point: cost.Point{Makespan: at + s.Overhead + takes,
					Cost: slot.Charge(hourly(s, gpus), int64(cpus)*(s.Overhead+takes).Milliseconds())}})
				from = append(from, i)
			}
		}
		if len(slots) == 0 {
			return nil, false
		}
		best := plan.Goal{Objective: plan.Tradeoff, Tradeoff: alpha}.Best(points, nil)
		one := slots[best]
		rooms[from[best]].Take(one.From, one.To, one.CPUs)
		ready = points[best].Makespan
		all = joined(all, one, p.Sites[from[best]].Walltime)
	}
	return all, true
}

// asked returns the walltime to request for a pilot that is needed for the given length: 1.5 times the length, rounded
// up to whole minutes, within the queue's maximum.
func asked(length, most time.Duration) time.Duration {
	enough := max(shortestStage, (length*3/2 + time.Minute - 1).Truncate(time.Minute))
	return max(length, min(enough, most))
}

// held returns how long a pilot is held without running tasks.
func held(p plan.Problem, s *plan.Site) time.Duration { return -stays(p, s, 0) }

// joined appends a slot, or merges it with the last slot if that slot is in the same queue, has the same width, and
// ends where the new one begins, and if both together fit into one walltime.
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
