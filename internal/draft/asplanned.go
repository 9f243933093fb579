package draft

import (
	"bytes"
	"context"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/provision"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/wfformat"
)

// AsPlanned returns a workflow whose tasks have the estimates that a plan was made with, wherever those came from: what
// a worker starts before its pilot leaves, and what becomes of the plan, is then judged by what its pilots were asked
// for. If the plan is of other tasks, the document stays as it is. name is what errors call it.
func AsPlanned(ctx context.Context, db *store.DB, name string, document []byte, row corral.Plan) ([]byte, error) {
	runtimes, err := provision.Runtimes(db, row)
	if err != nil {
		return nil, err
	}
	flow, _, err := wfformat.Read(ctx, bytes.NewReader(document), name, workflow.Options{})
	if err != nil {
		return nil, err
	}
	if len(runtimes) != len(flow.Tasks) {
		return document, nil
	}
	same := true
	for i := range flow.Tasks {
		t := &flow.Tasks[i]
		d, planned := runtimes[t.ID]
		if !planned {
			return document, nil
		}
		if known, ok := t.Estimated(); !ok || known != d {
			t.Estimate, same = max(d, time.Millisecond), false // 0 is none
		}
	}
	if same {
		return document, nil
	}
	var text bytes.Buffer
	err = wfformat.Write(&text, flow)
	return text.Bytes(), err
}
