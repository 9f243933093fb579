package draft

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/planner"
	"github.com/corral-pilot/corral/planner/montecarlo"
	"github.com/corral-pilot/corral/sim"
)

// simulated has the planner make a plan, with simulated outcomes where the request calls for them.
func simulated(ctx context.Context, problem plan.Problem, in api.NewPlan, opts planner.Options) (*plan.Plan, error) {
	m := montecarlo.Model{Problem: problem, Spread: montecarlo.DefaultSpread}
	if in.Error != "" {
		var err error
		if m.Spread, err = sim.ParseSpread(in.Error); err != nil {
			return nil, corral.ErrorAt(corral.Invalid, "error", "%w", err)
		}
	}
	made, err := m.Make(ctx, in.Goal, opts)
	if err != nil || !in.Compare || !made.Feasible {
		return made, err
	}
	if made.Comparison, err = m.Compare(ctx, made, in.Seed); err != nil {
		return nil, err
	}
	switch {
	case made.Comparison != nil:
	case len(made.Pilots) == 0:
		made.Reasons = append(made.Reasons, "it asks for no pilots, because the workers that are there do the work: "+
			"other policies are not compared")
	default:
		made.Reasons = append(made.Reasons, "the workflow is too large to be compared by simulations")
	}
	return made, nil
}
