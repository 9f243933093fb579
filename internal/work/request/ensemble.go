package request

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// CheckEnsemble checks a request for an ensemble, as far as possible without reading its workflows. It computes the
// duration of a deadline that is an instant.
func CheckEnsemble(in *api.NewEnsemble, now time.Time) error {
	var k checker
	k.text("name", in.Name)
	k.invalid(in.Name == "", "name", "missing")
	k.invalid(len(in.Workflows) == 0, "workflows", "the ensemble has no workflows: name at least one")
	k.invalid(len(in.Workflows) > api.MaxMembers, "workflows", "%d are more than %d", len(in.Workflows), api.MaxMembers)
	k.instant("deadline", in.DeadlineAt, in.Deadline, now)
	in.Deadline = plan.Goal{Deadline: in.Deadline, DeadlineAt: in.DeadlineAt}.From(now).Deadline
	k.invalid(in.Deadline <= 0, "deadline_s", "%s is not a positive duration", in.Deadline)
	k.invalid(in.Budget.Money <= 0, "budget", "the budget must be positive")
	if _, err := cost.ParseAmount(in.Budget.String()); err != nil { // ParseAmount also checks the unit
		k.invalid(true, "budget", "%w", err)
	}
	k.invalid(in.Options.Open, "options.open", "an ensemble cannot contain open runs")
	for i, m := range in.Workflows {
		place := fmt.Sprintf("workflows[%d].", i)
		k.invalid(len(m.Workflow) == 0, place+"workflow", "missing")
		k.text(place+"workflow_name", m.WorkflowName)
		k.absolute(place+"source_dir", m.SourceDir)
		k.labels(m.Labels)
		k.keep(CheckLabels(m.Labels))
	}
	return k.err
}
