package main

// run --auto is plan, provision and run in one: corrald makes a plan for the workflow, asks for its pilots, and runs
// the workflow, its tasks put into jobs as the plan says, under the plan's label. By that label corrald knows which
// run's end releases the plan's pilots, so that nothing hangs on this command: it may be killed at any time.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
)

// An autoRun makes a run with the pilots that are planned for it.
type autoRun struct {
	c       *cli.Context
	p       *printer
	planned corral.Plan // of which the run is the execution

	predicted corral.Seconds // its makespan
}

// create plans and provisions, and creates the run then. A run that is refused leaves no pilots behind.
func (a *autoRun) create(cl *api.Client, ctx context.Context, in api.NewRun, key string) (corral.Run, error) {
	goal, err := goalOf(a.c)
	if err != nil {
		return corral.Run{}, err
	}
	profiles, err := profilesOf(a.c, a.p)
	if err != nil {
		return corral.Run{}, err
	}
	planKey := key
	if key != "" {
		planKey += ".plan"
	}
	a.planned, err = cl.CreatePlan(ctx, api.NewPlan{Cluster: in.Cluster, Workflow: in.Workflow,
		WorkflowName: in.WorkflowName, Goal: goal, Clustering: clusteringOf(a.c),
		Estimates: api.Estimates{DefaultRuntime: in.Options.DefaultRuntime, Profiles: profiles,
			Learn: a.c.Bool("learn")}}, planKey)
	if err != nil {
		return corral.Run{}, err
	}
	if a.planned.State == corral.PlanInfeasible {
		return corral.Run{}, corral.Errorf(corral.Unsatisfiable, "%s", a.planned.Reason)
	}
	if a.planned, err = cl.ProvisionPlan(ctx, a.planned.ID); err != nil {
		return corral.Run{}, err
	}
	var document plan.Plan
	if err := json.Unmarshal(a.planned.Document, &document); err != nil {
		return corral.Run{}, fmt.Errorf("reading plan %d: %w", a.planned.ID, err)
	}
	a.predicted = document.Makespan
	a.p.say("plan %d: %s, %d cpus at most; %s and %s predicted", a.planned.ID,
		fmt.Sprintf("%d pilot(s)", len(document.Pilots)), document.PeakCPUs, brief(document.Makespan),
		priced(document.Cost))
	labels := map[string]string{"plan": fmt.Sprint(a.planned.ID)}
	maps.Copy(labels, in.Labels)
	in.Labels = labels
	in.Options.Clustering = document.Clustering.String()
	r, err := cl.CreateRun(ctx, in, key)
	if err != nil {
		_, undo := cl.ReleasePlan(context.WithoutCancel(ctx), a.planned.ID)
		return r, errors.Join(err, undo)
	}
	return r, nil
}

// clusteringOf is the clustering that was asked for, empty if that is left to the planner.
func clusteringOf(c *cli.Context) string {
	if c.IsSet("clustering") {
		return c.String("clustering")
	}
	return ""
}

// compare puts what happened beside what was predicted. Both count from the plan's beginning.
func (a *autoRun) compare(r corral.Run) {
	predicted, took := a.predicted, corral.Seconds(r.EndedAt.Sub(a.planned.BeganAt))
	a.p.say("plan %d: %s predicted, %s taken (%+.0f %%)", a.planned.ID, brief(predicted), brief(took),
		100*(float64(took)/float64(max(predicted, 1))-1))
}
