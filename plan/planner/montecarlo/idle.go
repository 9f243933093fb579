package montecarlo

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
)

// Trials to avoid waiting are executions. So workflows of more than mostTrimmed tasks are not trimmed, the trials for
// one plan have about trimmedTasks tasks in total, and there is none unless it may save a share of the core-hours.
const (
	mostTrimmed  = 5_000
	trimmedTasks = 4_000
	worthTrying  = 0.005
)

// trim returns the plan of an execution without paid time in which pilots wait for nothing, as it is executed then. The
// plan ends no later and is cheaper, or it is played itself. Pilots that stay throughout are not changed.
func (m Model) trim(played *plan.Plan) *plan.Plan {
	if len(m.Work.Tasks) > mostTrimmed {
		return played
	}
	for range max(1, min(mostPlays, trimmedTasks/max(1, len(m.Work.Tasks)))) {
		better := m.trimmed(played)
		if better == nil {
			return played
		}
		played = better
	}
	return played
}

// trimmed returns a better execution in which pilots leave after their last tasks and are requested for their first
// tasks or, if tasks change places then, only leave after their last tasks; nil if neither is better.
func (m Model) trimmed(played *plan.Plan) *plan.Plan {
	least := worthTrying * played.CoreHours
	leaving, left := leaving(played)
	later, delayed := m.later(leaving)
	if delayed > 0 && left+delayed > least {
		if better := m.better(later, played); better != nil {
			return better
		}
	}
	if left > least {
		return m.better(leaving, played)
	}
	return nil
}

// better returns the execution of a plan if it is better than another execution, or nil.
func (m Model) better(p, than *plan.Plan) *plan.Plan {
	played, ok := m.once(p)
	if ok && m.improves(played, than) && !settled(p, played) { // a pilot has no task now
		played, ok = m.settle(played)
	}
	if !ok || !m.improves(played, than) {
		return nil
	}
	return played
}

// leaving returns the plan of an execution with pilots that need not stay longer than until the end of their last
// tasks, and the core-hours for which pilots were held beyond their idle time.
func leaving(played *plan.Plan) (p *plan.Plan, idle float64) {
	p = withPilots(played)
	last := make([]corral.Seconds, len(p.Pilots))
	for _, at := range p.Schedule {
		if at.Pilot < len(last) {
			last[at.Pilot] = max(last[at.Pilot], at.End)
		}
	}
	for k := range p.Pilots {
		q := &p.Pilots[k]
		need := max(0, last[k]-q.Start)
		beyond := q.MinStay - need - q.Patience()
		if beyond > noticed && !q.Throughout() {
			q.MinStay = need
			idle += coreHours(q, beyond)
		}
	}
	return p, idle
}

// later returns a plan whose pilots are ready when their first tasks are, and the core-hours for which they were ready
// earlier. A pilot that stays throughout, is linked to another, was submitted early on purpose, relies on free room in
// its queue, or is ready earlier by less than the idle time is not changed.
func (m Model) later(played *plan.Plan) (p *plan.Plan, early float64) {
	p = withPilots(played)
	first := make([]corral.Seconds, len(p.Pilots))
	for k := range first {
		first[k] = p.Makespan
	}
	for _, at := range p.Schedule {
		if at.Pilot < len(first) {
			first[at.Pilot] = min(first[at.Pilot], at.Start)
		}
	}
	bound := linked(p.Pilots)
	for k := range p.Pilots {
		q := &p.Pilots[k]
		idle := first[k] - corral.Seconds(m.Cluster.Hop) - q.Ready
		if idle <= plan.LeaveAfter || bound[k] || m.Site(q.Site, q.Queue).Room != nil {
			continue
		}
		q.Submit, q.Start, q.Ready = q.Submit+idle, q.Start+idle, q.Ready+idle
		q.MinStay = max(0, q.MinStay-idle)
		early += coreHours(q, idle)
	}
	return p, early
}

// coreHours returns the core-hours of a pilot in a time.
func coreHours(q *plan.Pilot, d corral.Seconds) float64 {
	return time.Duration(d).Hours() * float64(q.HeldCPUs())
}

// linked returns for each pilot whether its submission is bound to another pilot or to a purpose other than its tasks.
func linked(pilots []plan.Pilot) []bool {
	all := make([]bool, len(pilots))
	for k, q := range pilots {
		all[k] = all[k] || q.Early || q.Throughout() || q.Follows != nil || q.Hedges != nil
		for _, other := range []*int{q.Follows, q.Hedges} {
			if other != nil {
				all[*other] = true
			}
		}
	}
	return all
}

// improves reports whether an execution obeys the sites and is cheaper than another one and, apart from rounding, no
// later. If both cost nothing, it holds fewer core-hours.
func (m Model) improves(p, than *plan.Plan) bool {
	if p.Makespan >= than.Makespan+noticeable || p.Goal.Objective == plan.CPUs && p.PeakCPUs > than.PeakCPUs {
		return false
	}
	if p.Cost.Money > than.Cost.Money || p.Cost.Money == than.Cost.Money &&
		(p.Cost.Money > 0 || p.CoreHours >= than.CoreHours) {
		return false
	}
	unbound := *p
	unbound.Goal.Deadline, unbound.Goal.Budget = 0, (*cost.Amount)(nil)
	return validator.Check(m.Problem, &unbound) == nil
}

// withPilots returns a copy of a plan whose pilots can be changed.
func withPilots(p *plan.Plan) *plan.Plan {
	q := *p
	q.Pilots = slices.Clone(p.Pilots)
	return &q
}
