package planning

import (
	"context"
	"slices"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/algorithm"
)

// seldom is the share of outcomes in which a plan should finish at least, if it is not revised.
const seldom = 0.5

// answered makes a plan with an algorithm, and adds simulated outcomes if they are requested.
func answered(ctx context.Context, q algorithm.Question, in api.NewPlan) (*plan.Plan, error) {
	of := q.Model.Sites
	if in.Hedge && !slices.ContainsFunc(of, func(s plan.Site) bool { return s.Name != of[0].Name }) {
		return nil, corral.ErrorAt(corral.Unsatisfiable, "hedge", "each pilot needs a second one at another "+
			"site, and only %s accepts pilots", of[0].Name)
	}
	q.Model = q.Model.Remembering()
	made, err := q.Make(ctx, in.Algorithm)
	if err == nil && in.Hedge && made.Feasible && len(made.Pilots) > 0 {
		if made = q.Hedge(made); len(plan.Hedged(made.Pilots)) == len(made.Pilots) {
			return nil, corral.ErrorAt(corral.Unsatisfiable, "hedge", "%s", made.Reasons[len(made.Reasons)-1])
		}
	}
	if err != nil || !made.Feasible {
		return made, err
	}
	made.Odds = q.Model.Odds(ctx, made, in.Seed)
	if o := made.Odds; o != nil && o.Finishes.Share < seldom && made.Confidence == nil && in.Goal.Bounded() {
		made.Reasons = append(made.Reasons, "in most outcomes pilots leave before the last tasks, unless `corral run "+
			"--auto` revises the plan: with --confidence 0.9 pilots stay as long as necessary")
	}
	if !in.Compare {
		return made, context.Cause(ctx)
	}
	ways, err := q.Ways(ctx, made)
	if err == nil {
		made.Comparison, err = q.Model.Compare(ctx, made, in.Seed, ways...)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case made.Comparison != nil:
	case len(made.Pilots) == 0:
		made.Reasons = append(made.Reasons, "it requests no pilots, because the present workers do the work: "+
			"other policies are not compared")
	default:
		made.Reasons = append(made.Reasons, "the workflow is too large to compare policies by simulation")
	}
	return made, nil
}
