package planning

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// otherwise is the assumed runtime of a task without an estimate. Runs have the same default.
const otherwise = time.Minute

// Cluster decides how the tasks of a run become jobs if the request leaves this to corrald. It chooses the rule with
// the shortest predicted makespan on the run's cluster, given the workflow's estimates, the cluster's overhead in
// earlier runs, and the workers that are present or requested.
func (d *Desk) Cluster(ctx context.Context, in *api.NewRun, flow *workflow.Workflow, cluster corral.Cluster) error {
	if in.Options.Clustering != string(clustering.Auto) {
		return nil
	}
	known, transfers, _, err := d.learned(ctx, cluster, in.Options.Stream)
	if err != nil {
		return err
	}
	problem := plan.Problem{Cluster: known}
	if problem.Present, err = d.present(ctx, cluster); err != nil {
		return err
	}
	transfers.Carry(&problem)
	tasks := make([]clustering.Unit, len(flow.Tasks))
	for i, estimate := range flow.Estimates(cmp.Or(time.Duration(in.Options.DefaultRuntime), otherwise)) {
		t := &flow.Tasks[i]
		tasks[i] = clustering.Unit{Needs: t.Resources, Estimate: max(estimate, time.Millisecond), Label: t.Label()}
	}
	rule, _ := clustering.Choose(flow.Graph, tasks, supply(problem))
	in.Options.Clustering = rule.String()
	return nil
}

// supply sums the workers present in a problem without sites.
func supply(p plan.Problem) clustering.Supply {
	s := clustering.Supply{Way: p.Cluster.Turn(), Rate: p.Cluster.Rate}
	latency := time.Duration(math.MaxInt64)
	for _, q := range p.Present {
		s.CPUs += q.Hosts * q.Host.CPUs
		s.Left = max(s.Left, q.End-q.Ready)
		latency = min(latency, q.Transfer.Latency)
	}
	if len(p.Present) > 0 {
		s.Way += latency
	}
	return s
}
