package planning

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/run"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/profile"
)

// experience gathers what is known about the tasks of a workflow from sources other than the workflow. It raises the
// memory of tasks to what earlier runs have learned, and describes this in raised; what is left of a run requests what
// the run requested at its beginning.
func (d *Desk) experience(ctx context.Context, in api.NewPlan, owner string, flow *workflow.Workflow) (
	x provision.Experience, raised []string, err error,
) {
	x.Fallback = time.Duration(in.DefaultRuntime)
	if !in.NoLearn {
		if x.Earlier, x.Runs, err = d.earlier(ctx, owner, flow); err != nil {
			return x, nil, err
		}
	}
	if !in.NoLearn && in.Run == 0 {
		if raised, err = remembered(ctx, d.db, owner, flow); err != nil {
			return x, nil, err
		}
	}
	if in.Auto {
		x.Guess = otherwise
	}
	if len(in.Profiles) > 0 {
		x.Given, err = Shelf{d.db}.merged(ctx, owner, "profiles", in.Profiles)
	}
	return x, raised, err
}

// A plan examines its owner's latest runs, and learns from the latest similar ones.
const (
	mostLooked  = 50
	mostLearned = 20
)

// earlier merges the measurements from earlier runs of similar workflows, and returns the runs, oldest first; the
// profile is nil if there are none. It ignores runs whose directory is missing or damaged.
func (d *Desk) earlier(ctx context.Context, owner string, flow *workflow.Workflow) (merged *profile.Profile,
	runs []corral.RunID, err error) {
	rows, err := store.Read(ctx, d.db.Request(ctx), func(tx *store.Tx) ([]corral.Run, error) {
		return tx.Runs(store.RunFilter{})
	})
	rows = slices.DeleteFunc(rows, func(r corral.Run) bool {
		return r.Owner != owner || !r.State.Over() || r.Tasks.Done == 0
	})
	named := provision.Named(flow)
	for _, row := range slices.Backward(rows[max(0, len(rows)-mostLooked):]) {
		p, unreadable := run.Profile(ctx, row)
		switch {
		case unreadable != nil || !provision.Alike(p, flow) || row.Workflow != flow.Name && !named:
			continue
		case merged == nil:
			merged = p
		case merged.Merge(p) != nil: // the same run
			continue
		}
		if runs = append(runs, row.ID); len(runs) == mostLearned {
			break
		}
	}
	slices.Reverse(runs)
	return merged, runs, errors.Join(err, ctx.Err())
}

// learned returns the overheads of a cluster and the cost of transferring files to its workers, as measured in its
// latest runs: either the streamed ones or the others.
func (d *Desk) learned(ctx context.Context, cluster corral.Cluster, streamed bool) (
	plan.Cluster, provision.Transfers, []string, error,
) {
	rows, err := store.Read(ctx, d.db.Request(ctx), func(tx *store.Tx) ([]corral.Run, error) {
		return tx.Runs(store.RunFilter{Filter: store.Filter{All: true}, Cluster: cluster.ID})
	})
	rows = slices.DeleteFunc(rows, func(r corral.Run) bool { return r.Options.Stream != streamed })
	var reports []*corral.RunReport
	for _, row := range rows[max(0, len(rows)-mostLearned):] {
		reports = append(reports, row.Report)
	}
	known, reasons := provision.LearnedCluster(provision.Cluster(cluster.Kind, streamed), reports)
	transfers, also := provision.LearnedTransfers(reports)
	return known, transfers, append(reasons, also...), err
}
