package main

import (
	"bytes"
	"fmt"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// independent returns a workflow document of n no-op tasks without dependencies.
func independent(n int) ([]byte, error) { return document(n, false) }

// chain returns a document of n no-op tasks, each of which depends on the previous one.
func chain(n int) ([]byte, error) { return document(n, true) }

// document builds the workflow with the Builder that all format readers use, and writes it in the format that corrald
// receives.
func document(n int, chained bool) ([]byte, error) {
	wf := &workflow.Workflow{Name: "noop"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	id := func(i int) string { return fmt.Sprintf("t%06d", i) }
	for i := range n {
		if err := b.Add(workflow.Task{ID: id(i), Name: "noop", Argv: noop}, workflow.Place{}); err != nil {
			return nil, err
		}
		if chained && i > 0 {
			b.Edge(id(i-1), id(i), workflow.Place{})
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err := wfformat.Write(&text, wf)
	return text.Bytes(), err
}
