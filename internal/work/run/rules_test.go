package run

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
)

// The priority of a run is added to those of its tasks, whether they have one or not.
func TestPriorityOfARun(t *testing.T) {
	t.Parallel()
	flow := &workflow.Workflow{Tasks: []workflow.Task{
		{ID: "a"}, {ID: "b", Control: &workflow.Control{Priority: 3}}, {ID: "c", Control: &workflow.Control{Priority: -api.MaxPriority}},
	}}
	for priority, want := range map[int][3]int{0: {0, 3, -api.MaxPriority}, 5: {5, 8, 5 - api.MaxPriority}, -7: {-7, -4, -api.MaxPriority}} {
		spec := execution.Spec{Tasks: make([]execution.TaskSpec, 3)}
		if err := addRules(&spec, flow, corral.RunOptions{Priority: priority}); err != nil {
			t.Fatal(err)
		}
		var got [3]int
		for i, task := range spec.Tasks {
			if task.Rules != nil {
				got[i] = task.Rules.Priority
			}
		}
		if got != want {
			t.Errorf("run of priority %d: %v, want %v", priority, got, want)
		}
	}
}
