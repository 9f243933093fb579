package request

import (
	"bytes"
	"cmp"
	"context"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// Workflow parses the workflow of a request once; later steps receive the value. name is the workflow's file, with
// which errors begin; if it is empty, they begin with "workflow". Errors are those of wfformat.Read.
func Workflow(ctx context.Context, document []byte, name string) (*workflow.Workflow, error) {
	flow, _, err := wfformat.Read(ctx, bytes.NewReader(document), cmp.Or(name, "workflow"), workflow.Options{})
	return flow, err
}
