package run

import (
	"testing"

	"github.com/corral-pilot/corral/workflow"
)

func TestApart(t *testing.T) {
	t.Parallel()
	outputs := func(names ...string) workflow.Task { return workflow.Task{ID: "a", Outputs: names} }
	for _, tt := range []struct {
		name  string
		tasks []workflow.Task
		ok    bool
	}{
		{"none", nil, true},
		{"two beside each other", []workflow.Task{outputs("d/a", "d/b", "da", "d.a")}, true},
		{"the same one twice", []workflow.Task{outputs("d"), {ID: "b", Inputs: []string{"d"}}}, true},
		{"all there is", []workflow.Task{outputs(".")}, true},
		{"one within another", []workflow.Task{outputs("d", "d/s/k")}, false},
		{"in an odd way", []workflow.Task{outputs("d", "./d/s")}, false},
		{"in another odd way", []workflow.Task{outputs("d//", "d/s")}, false},
		{"of another task", []workflow.Task{outputs("d"), {ID: "b", Inputs: []string{"d/s/k"}}}, false},
		{"a stream", []workflow.Task{outputs("d"), {ID: "b", Streams: workflow.Streams{Stdout: "d/log"}}}, false},
		{"by its other name", []workflow.Task{outputs("d"), {ID: "b", Inputs: []string{"k"}, Names: map[string]string{"k": "d/k"}}}, false},
		{"all there is, and one in it", []workflow.Task{outputs("."), {ID: "b", Inputs: []string{"s/k"}}}, false},
	} {
		if err := apart(&workflow.Workflow{Tasks: tt.tasks}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
