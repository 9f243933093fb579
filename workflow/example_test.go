package workflow_test

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// A program builds a workflow without a file: two tasks read the file that the first one writes, and so become its
// children.
func ExampleBuilder() {
	wf := &workflow.Workflow{Name: "count"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.FileOrder = true // no edges: the files determine the order
	for _, t := range []workflow.Task{
		{ID: "fetch", Argv: []string{"./fetch"}, Outputs: []string{"text"}, Estimate: time.Minute},
		{ID: "words", Argv: []string{"wc", "-w", "text"}, Inputs: []string{"text"}, Estimate: 3 * time.Minute},
		{ID: "lines", Argv: []string{"wc", "-l", "text"}, Inputs: []string{"text"}, Estimate: 2 * time.Minute},
	} {
		if err := b.Add(t, workflow.Place{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		fmt.Println(err)
		return
	}
	s := wf.Summary()
	fmt.Printf("%d tasks, %d edges, %d levels\n", s.Tasks, s.Edges, s.Levels)
	fmt.Printf("critical path %s, work %g s\n", s.CriticalPath, s.TotalWork)
	fmt.Println("parents of words:", wf.Graph.Parents(1), "- runnable:", wf.Runnable() == nil)
	// Output:
	// 3 tasks, 2 edges, 2 levels
	// critical path 4m0s, work 360 s
	// parents of words: [0] - runnable: true
}
