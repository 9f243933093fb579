package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Task 0 precedes S, which contains the tasks 1 to 4, of which 2 and 3 are in T; S precedes task 5. A job is not a
// part.
func TestParts(t *testing.T) {
	t.Parallel()
	wf := &workflow.Workflow{Tasks: make([]workflow.Task, 6), Subworkflows: []workflow.Subworkflow{
		{Name: "J", First: 1, End: 2, Job: true}, {Name: "T", First: 2, End: 4}, {Name: "S", First: 1, End: 5},
	}}
	var err error
	wf.Graph, err = dag.New(6, [][2]int{{0, 1}, {0, 4}, {1, 2}, {1, 3}, {2, 5}, {3, 5}, {4, 5}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := workflow.PartsOf(wf, 3)
	if err != nil {
		t.Fatal(err)
	}
	var items [][]int
	for k := range p.All {
		items = append(items, p.All[k].Items)
	}
	if diff := cmp.Diff([][]int{{0, ^1, 5}, {1, ^2, 4}, {2, 3}}, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int][]int{^1: {0}, 5: {^1}, ^2: {1}}, p.Before); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 2, 1, 0}, p.In); diff != "" {
		t.Errorf("in (-want +got):\n%s", diff)
	}
	if _, err := workflow.PartsOf(wf, 2); err == nil {
		t.Error("three workflows within each other are two")
	}
}
