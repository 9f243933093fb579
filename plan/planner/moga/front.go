package moga

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A Member is a choice of slots that no other known choice dominates.
type Member struct {
	cost.Point
	Chosen Set
}

// A Front is a list of members by ascending makespan, and thereby descending cost.
type Front []Member

// front returns the front of members; of equal ones the first is kept.
func front(all []Member) (f Front) {
	for _, i := range cost.Pareto(Front(all).Points(), nil) {
		f = append(f, all[i])
	}
	return f
}

// Points returns the figures of the members.
func (f Front) Points() []cost.Point {
	points := make([]cost.Point, len(f))
	for i, m := range f {
		points[i] = m.Point
	}
	return points
}

// Choose returns the member that is best for a goal (plan.Goal.Order), within its deadline and its budget. If no member
// is within the limits, or the front is empty, the error is of kind Unsatisfiable and names the closest members.
func (f Front) Choose(goal plan.Goal) (Member, error) {
	if len(f) == 0 {
		return Member{}, corral.Errorf(corral.Unsatisfiable, "no choice of the slots has room for all tasks")
	}
	candidates := make([]plan.Candidate, len(f))
	for i, p := range f.Points() {
		candidates[i] = plan.Candidate{Point: p, Outside: !goal.Within(p)}
	}
	best := goal.Best(candidates, nil)
	if best < 0 {
		fast, cheap := f[0], f[len(f)-1]
		return Member{}, corral.Errorf(corral.Unsatisfiable, "no plan is within the limits: the fastest takes %s and "+
			"costs %s, the cheapest takes %s and costs %s", fast.Makespan, fast.Cost, cheap.Makespan, cheap.Cost)
	}
	return f[best], nil
}
