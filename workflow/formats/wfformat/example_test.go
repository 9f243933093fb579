package wfformat_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

func ExampleRead() {
	file := `{
  "name": "hello", "schemaVersion": "1.5",
  "workflow": {
    "specification": {"tasks": [
      {"name": "say", "id": "say", "parents": [], "children": ["count"], "outputFiles": ["words"],
       "x-corral": {"stdout": "words", "estimate_s": 1}},
      {"name": "count", "id": "count", "parents": ["say"], "children": [], "inputFiles": ["words"],
       "x-corral": {"retires": 2}}
    ]}}}`
	_, _, err := wfformat.Read(context.Background(), strings.NewReader(file), "hello.json", workflow.Options{})
	fmt.Println(err)

	file = strings.Replace(file, "retires", "retries", 1)
	wf, _, err := wfformat.Read(context.Background(), strings.NewReader(file), "hello.json", workflow.Options{})
	fmt.Println(wf.Name, len(wf.Tasks), wf.Graph.Edges(), err)
	fmt.Println(wf.Runnable())
	// Output:
	// hello.json:8: workflow.specification.tasks[].x-corral: unknown field "retires"
	// hello 2 1 <nil>
	// hello.json:5: task "say": it has no command (in WfFormat: command.program of its execution task; in DAX: an argument)
}
