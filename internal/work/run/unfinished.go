package run

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
)

// Left tells how far each task of a run is, by the index that it has in the run's workflow. The workflow is not to be
// changed.
func (m *Manager) Left(ctx context.Context, id corral.RunID) (*workflow.Workflow, []execution.Progress, error) {
	var flow *workflow.Workflow
	var all []execution.Progress
	err := m.look(ctx, id, func(s *state) { flow, all = s.plan.snapshot(), execution.ProgressOf(s.x) })
	return flow, all, err
}
