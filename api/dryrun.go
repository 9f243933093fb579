package api

import (
	"context"
	"net/http"
)

// A DryRun says what a run would do that was asked for like any other, but not created.
type DryRun struct {
	Workflow string       `json:"workflow"` // its name
	Cluster  string       `json:"cluster"`
	CPUs     int          `json:"cpus"` // of the workers that the cluster has now
	Run      int          `json:"run"`  // tasks that would run
	Skip     int          `json:"skip"` // tasks that were done before
	Jobs     int          `json:"jobs"` // that those which would run become; more, where a worker has less time
	Fits     bool         `json:"fits"` // each task that would run fits some worker, present or requested
	Tasks    []DryRunTask `json:"tasks"`
}

// A DryRunTask says what would become of one task.
type DryRunTask struct {
	ID     string `json:"id"`
	Name   string `json:"name"`          // of its transformation
	Run    bool   `json:"run"`           // else it was done before
	Job    int    `json:"job,omitempty"` // number of the clustered job that it would be in; absent: it is a job alone
	Reason string `json:"reason,omitempty"`
	Lack   string `json:"lack,omitempty"` // what no worker has that it needs; absent: some worker could take it
}

// DryRun asks what a run would do. Nothing is created.
func (c *Client) DryRun(ctx context.Context, r NewRun) (DryRun, error) {
	body, err := encodeRun(r)
	if err != nil {
		return DryRun{}, err
	}
	return decode[DryRun](c.do(ctx, call{method: http.MethodPost, path: "/v1/runs/dry-run", body: body}))
}

// encodeRun writes a request for a run.
func encodeRun(r NewRun) ([]byte, error) {
	document := r.Workflow
	r.Workflow = placeholder
	return encodeAround(r, r.WorkflowName, document)
}
