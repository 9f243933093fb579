package workflow_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// A run takes what it heeds, and what changes nothing; the rest is refused in words that name the task.
func TestSchedulable(t *testing.T) {
	t.Parallel()
	none, some := 0, 2
	controls := func(a, b *workflow.Control) *workflow.Workflow {
		return &workflow.Workflow{Name: "w", Tasks: []workflow.Task{{ID: "a", Control: a}, {ID: "b", Control: b}}}
	}
	limited := func(most int) *workflow.Workflow {
		wf := controls(&workflow.Control{Category: "c"}, &workflow.Control{Category: "c"})
		wf.Categories = map[string]int{"c": most}
		return wf
	}
	within := func(s workflow.Subworkflow) *workflow.Workflow {
		wf := controls(nil, nil)
		wf.Subworkflows = []workflow.Subworkflow{s}
		return wf
	}
	spared := func(retries *int) *workflow.Workflow {
		wf := controls(nil, &workflow.Control{UnlessExit: 3})
		wf.Tasks[1].Retries = retries
		return wf
	}
	named := controls(nil, nil)
	named.Tasks[0].Names = map[string]string{"d/x": "x"}
	for _, c := range []struct {
		name string
		wf   *workflow.Workflow
		want string // after the place; "": it is taken
	}{
		{"nothing is said", controls(nil, &workflow.Control{}), ""},
		{"a process that does nothing", controls(&workflow.Control{Noop: true}, nil), ""},
		{"one priority", controls(&workflow.Control{Priority: 3}, &workflow.Control{Priority: 3}), ""},
		{"an exit status and no retries", spared(&none), ""},
		{"a limit out of reach", limited(2), ""},
		{"a category without a limit", controls(&workflow.Control{Category: "c"}, nil), ""},
		{"a subworkflow", within(workflow.Subworkflow{Name: "s", End: 2, Retries: &none}), ""},
		{"done", controls(nil, &workflow.Control{Done: true}), `task "b": it is marked as done, and a run starts all tasks`},
		{"final", controls(nil, &workflow.Control{Final: true}),
			`task "b": it is the final task, to run even after failures, and a run skips it then`},
		{"a script", controls(&workflow.Control{Post: &workflow.Script{}}, nil),
			`task "a": it has a script (PRE, POST or HOLD), and a run starts none`},
		{"an abort", controls(&workflow.Control{Abort: &workflow.Abort{Exit: 4}}, nil),
			`task "a": its exit status 4 is to abort the workflow, and a run goes on`},
		{"an exit status and retries", spared(&some),
			`task "b": it is not to be tried again after exit status 3, and a run heeds no exit status`},
		{"an exit status and the run's retries", spared(nil),
			`task "b": it is not to be tried again after exit status 3, and a run heeds no exit status`},
		{"priorities", controls(nil, &workflow.Control{Priority: -1}),
			`task "b": its priority is not that of other tasks, and a run has no priorities`},
		{"a limit", limited(1),
			`task "b": of its category "c" at most 1 may run at a time, and a run has no such limits`},
		{"other names", named, `task "a": it knows file "d/x" as "x", and a run gives it files under their own names only`},
		{"a subworkflow's retries", within(workflow.Subworkflow{Name: "s", First: 1, End: 2, Retries: &some}),
			`subworkflow "s": it has retries as a whole, and a run tries single tasks again`},
		{"a subworkflow's script", within(workflow.Subworkflow{Name: "s", End: 2, Control: &workflow.Control{Pre: &workflow.Script{}}}),
			`subworkflow "s": it has a script (PRE, POST or HOLD), and a run starts none`},
	} {
		err := c.wf.Schedulable()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v, want none", c.name, err)
			}
		} else if corral.KindOf(err) != corral.Unsatisfiable || err.Error() != "workflow w: "+c.want {
			t.Errorf("%s:\n got %v\nwant workflow w: %s", c.name, err, c.want)
		}
	}
}
