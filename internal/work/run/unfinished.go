package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
)

// Left returns the workflow of a run, and the progress of each task by its index in the workflow. The workflow must not
// be changed.
func (m *Manager) Left(ctx context.Context, id corral.RunID) (*workflow.Workflow, []execution.Progress, error) {
	var flow *workflow.Workflow
	var all []execution.Progress
	err := m.look(ctx, id, func(s *state) { flow, all = s.plan.snapshot(), execution.ProgressOf(s.x) })
	return flow, all, err
}
