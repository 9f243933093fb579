package request

import (
	"bytes"
	"cmp"
	"context"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// Workflow parses the workflow of a request, once: what carries the request out is given the value. name is the
// workflow's file, by which errors begin; without one they begin with "workflow". Errors are as of wfformat.Read.
func Workflow(ctx context.Context, document []byte, name string) (*workflow.Workflow, error) {
	flow, _, err := wfformat.Read(ctx, bytes.NewReader(document), cmp.Or(name, "workflow"), workflow.Options{})
	return flow, err
}
