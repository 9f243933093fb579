package montecarlo

import (
	"reflect"
	"slices"

	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// A drawing holds the outcomes that have been simulated for one plan, in order of their numbers.
type drawing struct {
	of       *plan.Plan
	seed     uint64
	outcomes []Outcome
}

// drawings holds the outcomes of the plans of one request. A plan is judged more than once: while plans are compared,
// when its walltimes are chosen, and for its odds.
type drawings struct{ all []*drawing }

// Remembering returns a model that simulates no outcome of a plan twice, for one request.
func (m Model) Remembering() Model {
	m.drawn = new(drawings)
	return m
}

// drawing returns the outcomes of a plan so far. They depend on its pilots, its clustering, and the first tasks of its
// pilots, which are the same for the same pilots if the schedules are known.
func (d *drawings) drawing(pl *plan.Plan, seed uint64) *drawing {
	for _, o := range d.all {
		if o.seed == seed && o.of.Clustering == pl.Clustering && (o.of.Schedule == nil) == (pl.Schedule == nil) &&
			reflect.DeepEqual(o.of.Pilots, pl.Pilots) {
			return o
		}
	}
	o := &drawing{of: pl, seed: seed}
	d.all = append(d.all, o)
	return o
}

// Outcomes simulates the first n outcomes of a plan on all processors.
func (m Model) Outcomes(pl *plan.Plan, n int, seed uint64) []Outcome {
	d := &drawing{}
	if m.drawn != nil {
		d = m.drawn.drawing(pl, seed)
	}
	if first := len(d.outcomes); first < n {
		more := m.play(n-first, func(i int) sim.Scenario { return m.Scenario(pl, stream(seed, first+i)) })
		if m.context().Err() != nil {
			return append(slices.Clone(d.outcomes), more...) // some are empty
		}
		d.outcomes = append(d.outcomes, more...)
	}
	return slices.Clip(d.outcomes[:n])
}
