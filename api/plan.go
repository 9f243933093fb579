package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// NewPlan asks for a plan: which pilots to ask for, so that a workflow reaches a goal on a cluster.
type NewPlan struct {
	Cluster      string          `json:"cluster,omitempty"`       // name or id; empty: that of the run, else default
	Workflow     json.RawMessage `json:"workflow,omitempty"`      // a WfFormat document
	WorkflowName string          `json:"workflow_name,omitempty"` // its file: messages about it start with this
	Run          corral.RunID    `json:"run_id,omitempty"`        // of which what is left is planned, not a workflow
	Sites        []string        `json:"sites,omitempty"`         // names or ids; none: all that take pilots
	Goal         plan.Goal       `json:"goal"`                    // an absent objective has its default
	HostCPUs     int             `json:"host_cpus,omitempty"`     // of each pilot's hosts; 0: the planner chooses
	Clustering   string          `json:"clustering,omitempty"`    // a rule; empty or auto: the planner chooses
	Seed         uint64          `json:"seed,omitempty"`
	DryRun       bool            `json:"dry_run,omitempty"` // make no row: the answer has the id 0
	ForRun
	Estimates
	plan.WhatIf
	plan.Sought
	Aside
}

// ForRun says that a plan is made for one run, which is to follow.
type ForRun struct {
	Auto    bool     `json:"auto,omitempty"`     // revise it while its run goes on
	NextRun *NextRun `json:"next_run,omitempty"` // what would refuse this run refuses the plan; nil: nothing does
}

// NextRun is what a request for the run of a plan will say besides its workflow and its cluster.
type NextRun struct {
	SourceDir string            `json:"source_dir,omitempty"` // the workflow's own inputs are in it
	Dir       string            `json:"dir,omitempty"`        // of the run; empty: corrald chooses
	Options   corral.RunOptions `json:"options,omitzero"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Request is the request for the run.
func (n NextRun) Request(p NewPlan) NewRun {
	return NewRun{Cluster: p.Cluster, Workflow: p.Workflow, WorkflowName: p.WorkflowName, SourceDir: n.SourceDir,
		Dir: n.Dir, Options: n.Options, Labels: n.Labels}
}

// Aside is what a plan is to say beside its pilots.
type Aside struct {
	Marginal bool `json:"marginal,omitempty"` // what further cpus are worth
	Compare  bool `json:"compare,omitempty"`  // what policies come to that only react to a queue
}

// Estimates say where those of the tasks come from, besides the workflow.
type Estimates struct {
	DefaultRuntime corral.Seconds  `json:"default_runtime_s,omitempty"` // of a task of which nothing is known
	Profiles       []ProfileSource `json:"profiles,omitempty"`          // merged: before the workflow's own
	Learn          bool            `json:"learn,omitempty"`             // earlier runs before the workflow, too
	Error          string          `json:"error,omitempty"`             // in simulations, such as lognormal:0.2
}

// LinesMediaType is the content type of lines of JSON.
const LinesMediaType = "application/jsonl"

func planPath(id corral.PlanID) string { return fmt.Sprintf("/v1/plans/%d", id) }

// CreatePlan has corrald make a plan. One whose goal cannot be reached is INFEASIBLE, and says what can be.
func (c *Client) CreatePlan(ctx context.Context, p NewPlan, key string) (corral.Plan, error) {
	if len(p.Workflow) == 0 {
		return create[corral.Plan](ctx, c, "/v1/plans", key, p)
	}
	document := p.Workflow
	p.Workflow = placeholder
	body, err := encodeAround(p, p.WorkflowName, document)
	if err != nil {
		return corral.Plan{}, err
	}
	return change[corral.Plan](ctx, c, call{method: http.MethodPost, path: "/v1/plans", key: key, body: body})
}

// Plans lists plans, oldest first.
func (c *Client) Plans(ctx context.Context, f Filter) ([]corral.Plan, error) {
	return list[corral.Plan](ctx, c, "/v1/plans", f.query())
}

// Plan returns a plan.
func (c *Client) Plan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return get[corral.Plan](ctx, c, planPath(id), nil)
}

// ProvisionPlan asks for the plan's pilots, each at its time; a plan that is provisioned stays as it is.
func (c *Client) ProvisionPlan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return act[corral.Plan](ctx, c, planPath(id)+"/provision")
}

// ReleasePlan lets the plan's pilots go: those that run finish their tasks, the others are not asked for any more.
func (c *Client) ReleasePlan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return act[corral.Plan](ctx, c, planPath(id)+"/release")
}

// RemovePlan hides the record of a plan that holds no pilots.
func (c *Client) RemovePlan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return remove[corral.Plan](ctx, c, planPath(id), nil)
}

// PlanRevisions returns what was changed about the plan's pilots while its run went on, oldest first.
func (c *Client) PlanRevisions(ctx context.Context, id corral.PlanID) ([]corral.Revision, error) {
	return list[corral.Revision](ctx, c, planPath(id)+"/revisions", nil)
}

// PlanSchedule returns the place and the time of each task of the plan, as plan.ReadSchedule reads them; of a plan
// whose goal is out of reach those of the nearest.
func (c *Client) PlanSchedule(ctx context.Context, id corral.PlanID) ([]byte, error) {
	return c.do(ctx, call{method: http.MethodGet, path: planPath(id) + "/schedule"})
}

// PlanHistory returns what happened to the plan, oldest first.
func (c *Client) PlanHistory(ctx context.Context, id corral.PlanID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, planPath(id)+"/history", nil)
}
