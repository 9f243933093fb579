package workflow_test

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A run accepts every control that it supports or that has no effect; other controls are refused with a message that
// names the task.
func TestSchedulable(t *testing.T) {
	t.Parallel()
	controls := func(a, b *workflow.Control) *workflow.Workflow {
		g, err := dag.New(2, [][2]int{{0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		return &workflow.Workflow{Name: "w", Graph: g, Tasks: []workflow.Task{{ID: "a", Control: a}, {ID: "b", Control: b}}}
	}
	limited := func(most int) *workflow.Workflow {
		wf := controls(&workflow.Control{Category: "c"}, &workflow.Control{Category: "c"})
		wf.Categories = map[string]int{"c": most}
		return wf
	}
	within := func(c workflow.Control) *workflow.Workflow {
		wf := controls(nil, nil)
		wf.Subworkflows = []workflow.Subworkflow{{Name: "s", End: 2, Retries: new(2), Control: &c}}
		return wf
	}
	script := func(dir string, argv ...string) *workflow.Script { return &workflow.Script{Argv: argv, Dir: dir} }
	named := controls(nil, nil)
	named.Tasks[0].Names = map[string]string{"d/x": "x"}
	for _, c := range []struct {
		name string
		wf   *workflow.Workflow
		want string // error after the place; "": the control is accepted
	}{
		{"all that is heeded", controls(&workflow.Control{Noop: true, Done: true, Priority: 3, UnlessExit: 3},
			&workflow.Control{Final: true, Pre: script("d", "x"), Post: script("", "/y"), Abort: &workflow.Abort{}}), ""},
		{"a script that never runs", controls(&workflow.Control{Hold: script("")}, nil), ""},
		{"a limit", limited(1), ""},
		{"a category without a limit", controls(&workflow.Control{Category: "c"}, nil), ""},
		{"a subworkflow", within(workflow.Control{Pre: script("", "x"), Priority: 1}), ""},
		{"a limit of 0", limited(0), `task "a": its category "c" has a limit of 0: set a limit of at least 1`},
		{"a final task with a child", controls(&workflow.Control{Final: true}, nil),
			`task "a": it is a final task, which runs after all others, but has children`},
		{"a script without a name", controls(nil, &workflow.Control{Post: script("")}), `task "b": its POST script has no name`},
		{"a script elsewhere", controls(nil, &workflow.Control{Pre: script("../up", "x")}),
			`task "b": its PRE script runs in "../up", which is outside the run's directory`},
		{"a subworkflow's script", within(workflow.Control{Pre: script("/", "x")}),
			`subworkflow "s": its PRE script runs in "/", which is outside the run's directory`},
		{"other names", named, `task "a": it uses file "d/x" under the name "x", but a run provides files only under their own names`},
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

// Files that a script may create before they are read need not exist; tasks that were done before neither read nor
// write files.
func TestFilesOfScriptsAndDone(t *testing.T) {
	t.Parallel()
	g, err := dag.New(4, [][2]int{{0, 1}, {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	wf := &workflow.Workflow{Graph: g, Tasks: []workflow.Task{
		{ID: "a", Inputs: []string{"first"}, Outputs: []string{"from a"}},
		{ID: "b", Inputs: []string{"from a", "staged"}, Control: &workflow.Control{Post: &workflow.Script{Argv: []string{"x"}}}},
		{ID: "c", Inputs: []string{"behind"}},
		{ID: "d", Inputs: []string{"beside"}},
	}}
	if got := wf.MadeByScripts(); got["staged"] || !got["behind"] || got["beside"] {
		t.Errorf("made by scripts: %v", got)
	}
	wf.Tasks[1].Control.Pre = &workflow.Script{Argv: []string{"x"}}
	if got := wf.MadeByScripts(); !got["staged"] || got["first"] {
		t.Errorf("with a PRE script made by scripts: %v", got)
	}
	wf.Tasks[0].Control = &workflow.Control{Done: true}
	if got := wf.Needed(); !slices.Equal(got, []string{"behind", "beside", "from a", "staged"}) {
		t.Errorf("needed: %v", got)
	}
}
