package main

import (
	"bytes"
	"fmt"

	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/workflow"
)

// independent returns a workflow document of n no-op tasks that wait for nothing.
func independent(n int) ([]byte, error) { return document(n, nil) }

// chain returns one of n no-op tasks each of which waits for the one before it.
func chain(n int) ([]byte, error) {
	edges := make([][2]int, n-1)
	for i := range edges {
		edges[i] = [2]int{i, i + 1}
	}
	return document(n, edges)
}

func document(n int, edges [][2]int) ([]byte, error) {
	wf := &workflow.Workflow{Name: "noop", Tasks: make([]workflow.Task, n)}
	for i := range wf.Tasks {
		wf.Tasks[i] = workflow.Task{ID: fmt.Sprintf("t%06d", i), Name: "noop", Argv: noop, CPUs: 1}
	}
	var err error
	if wf.Graph, err = dag.New(n, edges); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = workflow.Write(&b, wf)
	return b.Bytes(), err
}
