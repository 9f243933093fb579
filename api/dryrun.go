package api

import (
	"context"
	"net/http"
)

// A DryRun describes the effect of a run that is requested but not created.
type DryRun struct {
	Workflow string       `json:"workflow"` // its name
	Cluster  string       `json:"cluster"`
	CPUs     int          `json:"cpus"` // of the cluster's present workers
	Run      int          `json:"run"`  // tasks that would run
	Skip     int          `json:"skip"` // tasks that were already done
	Jobs     int          `json:"jobs"` // jobs made from those tasks; more if workers have less time
	Fits     bool         `json:"fits"` // each task to run fits some worker, present or requested
	Tasks    []DryRunTask `json:"tasks"`
}

// A DryRunTask describes the effect on one task.
type DryRunTask struct {
	ID     string `json:"id"`
	Name   string `json:"name"`          // of its transformation
	Run    bool   `json:"run"`           // false: it was already done
	Job    int    `json:"job,omitempty"` // number of its clustered job; absent: it is a job alone
	Reason string `json:"reason,omitempty"`
	Lack   string `json:"lack,omitempty"` // a requirement that no worker meets; absent: some worker fits
}

// DryRun returns the effect of a run without creating it.
func (c *Client) DryRun(ctx context.Context, r NewRun) (DryRun, error) {
	body, err := encodeRun(r)
	if err != nil {
		return DryRun{}, err
	}
	return decode[DryRun](c.do(ctx, call{method: http.MethodPost, path: "/v1/runs/dry-run", body: body}))
}

// encodeRun encodes a request for a run.
func encodeRun(r NewRun) ([]byte, error) {
	document := r.Workflow
	r.Workflow = placeholder
	return encodeAround(r, r.WorkflowName, document)
}
