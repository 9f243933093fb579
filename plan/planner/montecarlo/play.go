package montecarlo

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// noticed is the maximum time from the end of a pilot until its successor starts, where a site has room for only one of
// them.
const noticed = corral.Seconds(2 * time.Second)

// noticeable is the least difference between times of executions: a plan is executed in whole milliseconds.
const noticeable = corral.Seconds(time.Millisecond)

// Play returns a plan as it is executed if each pilot starts as planned and each task takes as long as estimated: with
// the times of its pilots and tasks, and the figures that follow from them. The list schedule of a planner and the
// dispatcher follow the same rule, the first task by rank on the first place where it fits, but they examine places in
// a different order, and the dispatcher reserves a place for a task that was overtaken for too long. The difference
// moves tasks by seconds; where pilots end, it decides whether a task completes. ok is false if a task is left undone.
//
// Pilots of the execution do not wait for tasks longer than they have to, see trim.
//
// The simulator is the only reference, because it runs corrald's own matching code. Playable must hold.
func (m Model) Play(made *plan.Plan) (played *plan.Plan, ok bool) {
	if played, ok = m.settle(made); !ok {
		return nil, false
	}
	return m.trim(played), true
}

// settle executes a plan until an execution has the same pilots as the one before.
func (m Model) settle(made *plan.Plan) (played *plan.Plan, ok bool) {
	// Without the pilots that had no task, and with pilots requested when they were really due, the execution may be
	// another one.
	made = staggered(made)
	for range mostPlays {
		if played, ok = m.once(made); !ok || settled(made, played) {
			return played, ok
		}
		made = played
	}
	return nil, false
}

// staggered returns a plan in which at most reconcile.SubmitMost pilots of a queue are submitted in any
// reconcile.SubmitWindow, as corrald does it, so that the first execution of a plan with many pilots has them at their
// planned times.
func staggered(made *plan.Plan) *plan.Plan {
	p := withPilots(made)
	before := map[[2]string][]corral.Seconds{} // :: site and queue → times of submission
	for _, k := range bySubmission(p.Pilots) {
		q := &p.Pilots[k]
		in := [2]string{q.Site, q.Queue}
		all := before[in]
		if n := len(all) - reconcile.SubmitMost; n >= 0 {
			late := max(0, all[n]+corral.Seconds(reconcile.SubmitWindow)-q.Submit)
			q.Submit, q.Start, q.Ready = q.Submit+late, q.Start+late, q.Ready+late
		}
		before[in] = append(all, q.Submit)
	}
	return p
}

// Playable reports whether the workflow is small enough to be executed.
func (m Model) Playable() bool { return len(m.Work.Tasks) <= mostPlayed }

// mostPlayed is the maximum number of tasks of a workflow that is executed: a million take about a minute and two GiB.
const mostPlayed = 1_000_000

// mostPlays is the maximum number of executions until one has the same pilots as the one before.
const mostPlays = 5

// settled reports whether an execution had all pilots of a plan at their planned times.
func settled(made, played *plan.Plan) bool {
	same := func(a, b corral.Seconds) bool { return max(a-b, b-a) < noticeable }
	return slices.EqualFunc(made.Pilots, played.Pilots, func(q, r plan.Pilot) bool {
		return same(q.Submit, r.Submit) && same(q.Start, r.Start) && (q.Follows == nil) == (r.Follows == nil)
	})
}

// once executes a plan.
func (m Model) once(made *plan.Plan) (played *plan.Plan, ok bool) {
	p := *made
	p.Pilots = slices.Clone(made.Pilots)
	s := m.AsPlanned(made)
	done := newPlacer(m)
	s.Observe = done.observe
	trace := sim.Run(s)
	if trace.Ending != sim.Done {
		return nil, false
	}
	there := m.useful()
	number := make(map[string]int, len(p.Pilots)+len(there)) // :: tag → index of the pilot
	for _, h := range trace.Pilots {                         // without those that were due only after the last task
		if h.Attempt > 1 {
			return nil, false
		}
		k := int(h.Glidein) - 1 - len(there)
		if k < 0 {
			number[h.Tag] = len(p.Pilots) + there[h.Glidein-1]
			continue
		}
		number[h.Tag] = k
		q := &p.Pilots[k]
		q.Submit, q.Start, q.Ready = corral.Seconds(h.Submit), corral.Seconds(h.Start), corral.Seconds(h.Ready)
		q.End = max(q.Ready, corral.Seconds(h.End))
	}
	if p.Schedule, ok = done.schedule(trace.Begin, number); !ok {
		return nil, false
	}
	p.Makespan = 0
	for _, at := range p.Schedule {
		p.Makespan = max(p.Makespan, at.End)
		if at.Pilot < len(p.Pilots) {
			q := &p.Pilots[at.Pilot]
			q.End = max(q.End, at.End+corral.Seconds(m.Cluster.Leave))
		}
	}
	leaveOut(&p)
	for k := range p.Pilots {
		q := &p.Pilots[k]
		if q.Follows != nil && q.Start > p.Pilots[*q.Follows].End+noticed {
			q.Follows = nil // the other pilot left for lack of work: this one does not take its place
		}
		q.MinStay = m.Cluster.MinStay(*q)
	}
	m.Tally(&p)
	return &p, true
}

// A placer collects where and when each task runs.
type placer struct {
	m       Model
	all     []plan.Placement // :: task
	workers []string         // :: task; empty: not done
	twice   bool             // a task was done twice
}

func newPlacer(m Model) *placer {
	return &placer{m: m, all: make([]plan.Placement, len(m.Work.Tasks)), workers: make([]string, len(m.Work.Tasks))}
}

// observe adds the task that a record reports as done, if any. Its times count from 1970 until schedule is called.
func (p *placer) observe(r execution.Record) {
	o := r.Finished
	if o == nil || o.Status != execution.Done {
		return
	}
	t := &p.m.Work.Tasks[o.Task]
	at := plan.Placement{Task: int(o.Task), ID: t.ID, Kind: t.Kind, CPUs: t.Needs.CPUs,
		Start: milliseconds(o.Started), End: milliseconds(o.Ended)}
	if o.Way != nil {
		at.Transfer = milliseconds(o.Way.In)
		at.Start -= at.Transfer
	}
	p.twice = p.twice || p.workers[o.Task] != ""
	p.all[o.Task], p.workers[o.Task] = at, o.Worker
}

func milliseconds(t execution.Msec) corral.Seconds {
	return corral.Seconds(time.Duration(t) * time.Millisecond)
}

// schedule returns the placements. number maps the tag of a pilot to its index. ok is false unless each task was done
// exactly once.
func (p *placer) schedule(begin time.Time, number map[string]int) (all []plan.Placement, ok bool) {
	from := milliseconds(execution.ToMsec(begin))
	for i, worker := range p.workers {
		tag, host, _ := strings.Cut(worker, "/")
		at := &p.all[i]
		var err error
		if at.Pilot, ok = number[tag]; !ok {
			return nil, false
		}
		if at.Host, err = strconv.Atoi(host); err != nil {
			return nil, false
		}
		at.Start, at.End = at.Start-from, at.End-from
	}
	return p.all, !p.twice
}

// leaveOut removes the pilots on which no task runs.
func leaveOut(p *plan.Plan) {
	number := make([]int, len(p.Pilots)) // :: old number → new number
	for k := range number {
		number[k] = -1
	}
	for _, at := range p.Schedule {
		if at.Pilot < len(number) {
			number[at.Pilot] = 0
		}
	}
	var kept []plan.Pilot
	for k, q := range p.Pilots {
		if number[k] < 0 {
			continue
		}
		number[k] = len(kept)
		if q.Follows != nil {
			if first := number[*q.Follows]; first < 0 {
				q.Follows = nil
			} else {
				q.Follows = &first
			}
		}
		kept = append(kept, q)
	}
	p.Pilots = kept
	for i := range p.Schedule {
		if at := &p.Schedule[i]; at.Pilot < len(number) {
			at.Pilot = number[at.Pilot]
		} else { // a present pilot, which is numbered after the plan's own
			at.Pilot += len(kept) - len(number)
		}
	}
}

// AsPlanned returns a scenario in which each pilot of a plan starts as planned and runtimes are as estimated.
func (m Model) AsPlanned(made *plan.Plan) sim.Scenario {
	m.Spread, m.Errors, m.Queues, m.Among = sim.Spread{}, nil, nil, nil
	s := m.Scenario(made, 0)
	s.Runtime = func(task, _ int) time.Duration { return m.Work.Task(task).Runtime } // 0 is valid
	type queue struct{ site, name string }
	waits := map[queue][]time.Duration{}
	pilots := plan.Hedged(made.Pilots)
	for _, k := range bySubmission(pilots) {
		q := pilots[k]
		waits[queue{q.Site, q.Queue}] = append(waits[queue{q.Site, q.Queue}], time.Duration(q.Start-q.Submit))
	}
	for i := range s.Sites {
		in := queue{s.Sites[i].Name, s.Sites[i].Queue}
		if all, ok := waits[in]; ok {
			s.Sites[i].Draw = func(_ plan.Shape, n int) time.Duration {
				if n < len(all) {
					return all[n]
				}
				return sim.Never
			}
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
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pilots[a].Submit, pilots[b].Submit) })
	return order
}
