package planning

import (
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
)

// A Request is a request for a plan, with the workflow that it contains as a value.
type Request struct {
	api.NewPlan
	Flow *workflow.Workflow // nil: the plan is for what is left of a run
}

// A subject is what is to be planned: a workflow, or what is left of a run.
type subject struct {
	flow     *workflow.Workflow
	run      corral.Run           // its ID is 0 where a workflow is planned
	progress []execution.Progress // of the run's tasks
	streamed bool                 // its tasks go to worker jobs
}

// subject finds what a request is about. It takes the workflow out of the request, which outlives it: a large workflow
// is not kept while the planner works, which only sees the problem.
func (d *Desk) subject(ctx context.Context, in *Request) (s subject, err error) {
	if in.Run == 0 {
		s = subject{flow: in.Flow, streamed: in.NextRun != nil && in.NextRun.Options.Stream}
		in.Flow = nil
		return s, nil
	}
	s.run, err = store.Read(ctx, d.db.Request(ctx), func(tx *store.Tx) (corral.Run, error) { return tx.Run(in.Run) })
	if err == nil {
		s.streamed = s.run.Options.Stream
		s.flow, s.progress, err = d.runs.Left(ctx, in.Run)
	}
	return s, err
}

// left is what is left of a problem whose run has begun.
func (d *Desk) left(ctx context.Context, s subject, whole plan.Problem, transfers provision.Transfers) (plan.Problem,
	error) {
	glideins, err := d.glideins(ctx, s.run.Cluster)
	if err != nil {
		return plan.Problem{}, err
	}
	return provision.Unfinished{Run: s.run, Progress: s.progress, Glideins: glideins,
		Workers: d.clusters.Workers(s.run.Cluster), Now: time.Now(), Transfers: transfers}.Left(whole)
}
