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

// A Request is a request for a plan, with its workflow parsed.
type Request struct {
	api.NewPlan
	Flow *workflow.Workflow // nil: the plan is for the rest of a run
}

// A subject is the subject of a plan: a workflow, or the rest of a run.
type subject struct {
	flow     *workflow.Workflow
	run      corral.Run           // its ID is 0 if a workflow is planned
	progress []execution.Progress // of the run's tasks
	streamed bool                 // its tasks are streamed to worker jobs
}

// subject returns the subject of a request. It removes the workflow from the request, so that the memory of a large
// workflow can be freed while the planner works on the problem alone.
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

// left returns the rest of a problem whose run has begun.
func (d *Desk) left(ctx context.Context, s subject, whole plan.Problem, transfers provision.Transfers,
	guesses map[string]bool) (plan.Problem, error) {
	glideins, err := d.glideins(ctx, s.run.Cluster)
	if err != nil {
		return plan.Problem{}, err
	}
	return provision.Unfinished{Run: s.run, Progress: s.progress, Glideins: glideins,
		Workers: d.clusters.Workers(s.run.Cluster), Now: time.Now(), Transfers: transfers,
		Guesses: guesses}.Left(whole)
}
