package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// MaxMembers is the maximum number of workflows in an ensemble.
const MaxMembers = 1000

// NewEnsemble requests corrald to execute an ensemble.
type NewEnsemble struct {
	Name           string            `json:"name"`
	Cluster        string            `json:"cluster,omitempty"` // name or id; empty: default
	Site           string            `json:"site,omitempty"`    // name or id; empty: the only one
	Budget         cost.Amount       `json:"budget"`
	Deadline       corral.Seconds    `json:"deadline_s,omitempty"`
	DeadlineAt     time.Time         `json:"deadline_at,omitzero"`       // in place of the other
	Algorithm      string            `json:"algorithm,omitempty"`        // empty: rehearsal
	CPUs           int               `json:"pilot_cpus,omitempty"`       // per pilot; absent: 1
	MemoryMiB      int               `json:"memory_mib,omitempty"`       // per pilot; absent: its share
	Walltime       corral.Seconds    `json:"pilot_walltime_s,omitempty"` // absent: until the deadline
	Most           int               `json:"most,omitempty"`             // at a time; absent: the site's limit
	Error          string            `json:"error,omitempty"`            // expected error of runtimes; absent: 0
	Seed           uint64            `json:"seed,omitempty"`
	DefaultRuntime corral.Seconds    `json:"default_runtime_s,omitempty"` // of a task without an estimate
	Options        corral.RunOptions `json:"options"`                     // of the runs
	Workflows      []NewMember       `json:"workflows"`                   // highest priority first
}

// A NewMember is one workflow of a requested ensemble.
type NewMember struct {
	Workflow     json.RawMessage   `json:"workflow"`      // a WfFormat document
	WorkflowName string            `json:"workflow_name"` // its file name, which begins messages about the document
	SourceDir    string            `json:"source_dir"`    // folder with the workflow's own inputs
	Labels       map[string]string `json:"labels,omitempty"`
}

func ensemblePath(id record.ID) string { return fmt.Sprintf("/v1/ensembles/%d", id) }

// CreateEnsemble submits an ensemble to corrald, which then executes it on its own. An empty key is replaced by a
// random one.
func (c *Client) CreateEnsemble(ctx context.Context, n NewEnsemble, key string) (record.Ensemble, error) {
	sum := 0
	for _, m := range n.Workflows {
		if err := checkJSON(m.WorkflowName, m.Workflow); err != nil {
			return record.Ensemble{}, err
		}
		sum += len(m.Workflow)
	}
	if sum > MaxRunBody {
		return record.Ensemble{}, corral.Errorf(corral.Invalid, "the workflows have %d bytes, but a request may "+
			"have at most %d: split them into several ensembles", sum, MaxRunBody)
	}
	return create[record.Ensemble](ctx, c, "/v1/ensembles", key, n)
}

// Ensembles lists ensembles, oldest first.
func (c *Client) Ensembles(ctx context.Context, f Filter) ([]record.Ensemble, error) {
	return list[record.Ensemble](ctx, c, "/v1/ensembles", f.query())
}

// Ensemble returns an ensemble.
func (c *Client) Ensemble(ctx context.Context, id record.ID) (record.Ensemble, error) {
	return get[record.Ensemble](ctx, c, ensemblePath(id), nil)
}

// WaitEnsemble returns the ensemble once it has ENDED. After timeout (0: none) it returns the ensemble's current state
// and an error of kind Timeout.
func (c *Client) WaitEnsemble(ctx context.Context, id record.ID, timeout time.Duration) (record.Ensemble, error) {
	over := Until{string(record.Ended), string(record.Deleted)}
	return wait(ctx, c, ensemblePath(id), waiting[record.Ensemble]{over, timeout, over.Ensemble})
}

// CancelEnsemble ends an ensemble: its active runs are cancelled and its pilots leave. It does not change an ensemble
// that is already ending.
func (c *Client) CancelEnsemble(ctx context.Context, id record.ID) (record.Ensemble, error) {
	return act[record.Ensemble](ctx, c, ensemblePath(id)+"/cancel")
}

// RemoveEnsemble hides the record of an ensemble that has ENDED. Its runs remain.
func (c *Client) RemoveEnsemble(ctx context.Context, id record.ID) (record.Ensemble, error) {
	return remove[record.Ensemble](ctx, c, ensemblePath(id), nil)
}

// EnsembleHistory returns what happened to the ensemble, oldest first.
func (c *Client) EnsembleHistory(ctx context.Context, id record.ID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, ensemblePath(id)+"/history", nil)
}
