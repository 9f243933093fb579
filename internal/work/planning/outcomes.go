package planning

import (
	"context"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
)

// answered has an algorithm make a plan, with simulated outcomes where the request calls for them.
func answered(ctx context.Context, q algorithm.Question, in api.NewPlan) (*plan.Plan, error) {
	of := q.Model.Sites
	if in.Hedge && !slices.ContainsFunc(of, func(s plan.Site) bool { return s.Name != of[0].Name }) {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "hedge", "of each pilot there is a second one at another "+
			"site, and only %s takes pilots", of[0].Name)
	}
	made, err := q.Make(ctx, in.Algorithm)
	if err == nil && in.Hedge && made.Feasible && len(made.Pilots) > 0 {
		if made = algorithm.Hedge(q.Model.Problem, made); len(plan.Hedged(made.Pilots)) == len(made.Pilots) {
			return nil, corral.ErrorAt(corral.Unsatisfiable, "hedge", "%s", made.Reasons[len(made.Reasons)-1])
		}
	}
	if err != nil || !in.Compare || !made.Feasible {
		return made, err
	}
	if made.Comparison, err = q.Model.Compare(ctx, made, in.Seed); err != nil {
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
