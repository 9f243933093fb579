package run

import (
	"cmp"
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
)

// doneBefore is the reason why a task of a new run does not run.
const doneBefore = "done before"

// DryRun reports what a run for this request would do, given the cluster's current offer. It returns the same errors as
// Prepare, but creates nothing.
func (m *Manager) DryRun(ctx context.Context, cluster corral.Cluster, r api.NewRun, flow *workflow.Workflow) (
	api.DryRun, error,
) {
	c, err := checked(ctx, r, flow, m.rows)
	if err := cmp.Or(err, free(r.Dir)); err != nil {
		return api.DryRun{}, err
	}
	p := c.plan
	offer, err := m.clusters.Offer(ctx, cluster.ID)
	if err != nil {
		return api.DryRun{}, err
	}
	lacks := execution.Lacks(p.spec, offer)
	answer := api.DryRun{
		Workflow: p.flow.Name, Cluster: cluster.Name, CPUs: offer.CPUs, Fits: len(lacks) == 0,
		Tasks: make([]api.DryRunTask, len(p.spec.Tasks)),
	}
	of, jobs := p.spec.Jobs()
	answer.Jobs = jobs
	for i := range p.spec.Tasks {
		t := api.DryRunTask{ID: p.flow.Tasks[i].ID, Name: p.flow.Tasks[i].Name, Run: !p.spec.Tasks[i].Done, Job: of[i]}
		if t.Run {
			answer.Run++
		} else {
			answer.Skip++
			t.Reason = doneBefore
		}
		if c.why != nil {
			t.Reason = cmp.Or(c.why[i], "nothing has changed")
		}
		answer.Tasks[i] = t
	}
	for _, lack := range lacks {
		for _, i := range lack.Tasks {
			answer.Tasks[i].Lack = lack.What
		}
	}
	return answer, nil
}
