package algorithm

// The replay of a plan. Planner and dispatcher follow the same rule, the first task by rank on the first place where it
// fits, but they examine places in a different order, and the dispatcher reserves a place for a task that was overtaken
// for too long. If pilots stay as long as they are needed, this difference moves tasks by seconds. If slots end, it
// decides whether a task completes. Therefore the plan records the placements that the dispatcher makes.
//
// The simulator (sim) is the only reference, because it runs corrald's own matching code. A plan in slots therefore
// contains no guesses about where its tasks run, how long its pilots stay, or what they cost.

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/plan/validator"
)

// replayed returns a plan with its tasks where corrald's matching places them, provided that each pilot starts as
// planned. In slots, which have a fixed end, this differs from the list schedule, and there may be no place for a task.
// In that case, and if a task does not run exactly once, the second result is false. If files are transferred, or
// pilots are present already, it returns the plan unchanged.
func replayed(m montecarlo.Model, made *plan.Plan) (*plan.Plan, bool) {
	if len(m.Present) > 0 || slices.ContainsFunc(m.Sites, func(s plan.Site) bool {
		return s.Transfer != (plan.Transfer{})
	}) {
		return made, true
	}
	p := *made
	p.Pilots, p.Schedule, p.Makespan = slices.Clone(made.Pilots), nil, 0
	trace := sim.Run(AsReserved(m, made))
	if trace.Ending != sim.Done || len(trace.Pilots) != len(p.Pilots) {
		return nil, false
	}
	number := map[string]int{}                    // :: tag → index of the pilot
	left := make([]corral.Seconds, len(p.Pilots)) // when pilots have left because they were idle for too long
	for _, h := range trace.Pilots {
		k := int(h.Glidein) - 1
		number[h.Tag], left[k] = k, corral.Seconds(h.End)
	}
	last := make([]corral.Seconds, len(p.Pilots)) // ends of their last tasks
	at := map[int]plan.Placement{}
	for _, r := range trace.Records {
		o := r.Finished
		if o == nil || o.Status != execution.Done {
			continue
		}
		host, err := strconv.Atoi(path.Base(o.Worker))
		k, ok := number[path.Dir(o.Worker)]
		if _, twice := at[int(o.Task)]; err != nil || !ok || twice {
			return nil, false
		}
		t := m.Work.Tasks[o.Task]
		end := corral.Seconds(o.Ended.Time().Sub(trace.Begin))
		at[int(o.Task)] = plan.Placement{Task: int(o.Task), ID: t.ID, Kind: t.Kind, CPUs: t.Needs.CPUs, Pilot: k,
			Host: host, Start: corral.Seconds(o.Started.Time().Sub(trace.Begin)), End: end}
		last[k], p.Makespan = max(last[k], end), max(p.Makespan, end)
	}
	for _, i := range slices.Sorted(maps.Keys(at)) {
		p.Schedule = append(p.Schedule, at[i])
	}
	for k := range p.Pilots {
		q := &p.Pilots[k]
		q.End = max(q.Ready, last[k]) + corral.Seconds(m.Cluster.Leave)
		margin := corral.Seconds(m.Site(q.Site, q.Queue).Margin)
		q.End = max(q.End, min(left[k], q.Start+q.Walltime-margin))
	}
	measure(m.Problem, &p)
	return &p, validator.Check(m.Problem, &p) == nil
}

// AsReserved returns a scenario in which each pilot of a plan starts as planned and runtimes are as estimated.
func AsReserved(m montecarlo.Model, made *plan.Plan) sim.Scenario {
	m.Spread, m.Queues = sim.Spread{}, nil
	s := m.Scenario(made, 0)
	type queue struct{ site, name string }
	waits := map[queue][]time.Duration{}
	for _, k := range bySubmission(plan.Hedged(made.Pilots)) {
		q := made.Pilots[k]
		waits[queue{q.Site, q.Queue}] = append(waits[queue{q.Site, q.Queue}], time.Duration(q.Start-q.Submit))
	}
	for i := range s.Sites {
		in := queue{s.Sites[i].Name, s.Sites[i].Queue}
		s.Sites[i].Draw = func(_ plan.Shape, n int) time.Duration {
			if n < len(waits[in]) {
				return waits[in][n]
			}
			return sim.Never
		}
	}
	return s
}

// bySubmission returns the indices of pilots in order of submission.
func bySubmission(pilots []plan.Pilot) []int {
	order := make([]int, len(pilots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(pilots[a].Submit - pilots[b].Submit) })
	return order
}
