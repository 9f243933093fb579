package montecarlo

import (
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/validator"
)

// mostTrimmed is the maximum number of tasks of a workflow whose pilots are trimmed, because each trial is an
// execution.
const mostTrimmed = 20_000

// trim returns the plan of an execution without paid time in which pilots wait for nothing, as it is executed then. The
// plan ends no later and is cheaper, or it is played itself. The pilots of a static plan stay until its end.
func (m Model) trim(played *plan.Plan) *plan.Plan {
	if played.Goal.Static || len(m.Work.Tasks) > mostTrimmed {
		return played
	}
	for range mostPlays {
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
	leaving, leave := m.leaving(played)
	later, delay := m.later(leaving)
	if delay {
		if better, ok := m.settle(later); ok && m.improves(better, played) {
			return better
		}
	}
	if leave {
		if better, ok := m.settle(leaving); ok && m.improves(better, played) {
			return better
		}
	}
	return nil
}

// leaving returns the plan of an execution with pilots that need not stay longer than until the end of their last
// tasks. some reports whether a pilot was held for longer than its idle time.
func (m Model) leaving(played *plan.Plan) (p *plan.Plan, some bool) {
	p = withPilots(played)
	last := make([]corral.Seconds, len(p.Pilots))
	for _, at := range p.Schedule {
		if at.Pilot < len(last) {
			last[at.Pilot] = max(last[at.Pilot], at.End)
		}
	}
	for k := range p.Pilots {
		q := &p.Pilots[k]
		if need := max(0, last[k]-q.Start); q.MinStay > need+q.Patience()+noticed {
			q.MinStay, some = need, true
		}
	}
	return p, some
}

// later returns a plan whose pilots are ready when their first tasks are. some reports whether a pilot is ready earlier
// by more than the idle time. A pilot that is linked to another, was submitted early on purpose, or relies on free
// room in its queue is not changed.
func (m Model) later(played *plan.Plan) (p *plan.Plan, some bool) {
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
		q.Submit, q.Start, q.Ready, some = q.Submit+idle, q.Start+idle, q.Ready+idle, true
		q.MinStay = max(0, q.MinStay-idle)
	}
	return p, some
}

// linked returns for each pilot whether its submission is bound to another pilot or to a purpose other than its tasks.
func linked(pilots []plan.Pilot) []bool {
	all := make([]bool, len(pilots))
	for k, q := range pilots {
		all[k] = all[k] || q.Early || q.Follows != nil || q.Hedges != nil
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
