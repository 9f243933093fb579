package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// NewPlan requests a plan: the pilots with which a workflow reaches a goal on a cluster.
type NewPlan struct {
	Cluster      string          `json:"cluster,omitempty"`       // name or id; empty: the run's cluster, else default
	Workflow     json.RawMessage `json:"workflow,omitempty"`      // a WfFormat document
	WorkflowName string          `json:"workflow_name,omitempty"` // its file name, which begins messages about it
	Run          corral.RunID    `json:"run_id,omitempty"`        // run whose remaining tasks are planned instead
	Sites        []string        `json:"sites,omitempty"`         // names or ids; none: all sites that accept pilots
	Goal         plan.Goal       `json:"goal"`                    // an absent objective has its default
	HostCPUs     int             `json:"host_cpus,omitempty"`     // of each pilot's hosts; 0: the planner chooses
	Clustering   string          `json:"clustering,omitempty"`    // a rule; empty or auto: the planner chooses
	Seed         uint64          `json:"seed,omitempty"`
	DryRun       bool            `json:"dry_run,omitempty"` // do not store the plan: the answer has the id 0
	Apply        bool            `json:"apply,omitempty"`   // also request the pilots, in the same transaction
	ForRun
	Estimates
	plan.WhatIf
	plan.Sought
	Aside
}

// ForRun specifies that a plan is made for one run, which will follow.
type ForRun struct {
	Auto    bool     `json:"auto,omitempty"`     // revise it during its run
	NextRun *NextRun `json:"next_run,omitempty"` // errors in this request also refuse the plan; nil: no check
}

// NextRun is the request for the plan's run, without workflow and cluster.
type NextRun struct {
	SourceDir string            `json:"source_dir,omitempty"` // folder with the workflow's own inputs
	Dir       string            `json:"dir,omitempty"`        // of the run; empty: corrald chooses
	Options   corral.RunOptions `json:"options,omitzero"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Request returns the request for the run.
func (n NextRun) Request(p NewPlan) NewRun {
	return NewRun{Cluster: p.Cluster, Workflow: p.Workflow, WorkflowName: p.WorkflowName, SourceDir: n.SourceDir,
		Dir: n.Dir, Options: n.Options, Labels: n.Labels}
}

// Aside selects additional parts of a plan's report.
type Aside struct {
	Marginal bool `json:"marginal,omitempty"` // the value of further cpus
	Compare  bool `json:"compare,omitempty"`  // the results of other algorithms and of policies that only react
}

// Estimates specifies the sources of task estimates in addition to the workflow.
type Estimates struct {
	DefaultRuntime corral.Seconds  `json:"default_runtime_s,omitempty"` // of a task without any estimate
	Profiles       []ProfileSource `json:"profiles,omitempty"`          // merged; they override the workflow's own
	NoLearn        bool            `json:"no_learn,omitempty"`          // ignore measurements of earlier runs
	Error          string          `json:"error,omitempty"`             // in simulations, such as lognormal:0.2
}

// LinesMediaType is the media type of lines of JSON.
const LinesMediaType = "application/jsonl"

func planPath(id corral.PlanID) string { return fmt.Sprintf("/v1/plans/%d", id) }

// CreatePlan makes corrald compute a plan. If its goal cannot be reached, the plan is INFEASIBLE and names the nearest
// goal.
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

// ProvisionPlan requests the plan's pilots, each at its time. A plan that is already provisioned is not changed.
func (c *Client) ProvisionPlan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return act[corral.Plan](ctx, c, planPath(id)+"/provision")
}

// ReleasePlan releases the plan's pilots: running pilots finish their tasks, and the others are not requested.
func (c *Client) ReleasePlan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return act[corral.Plan](ctx, c, planPath(id)+"/release")
}

// RemovePlan hides the record of a plan that holds no pilots.
func (c *Client) RemovePlan(ctx context.Context, id corral.PlanID) (corral.Plan, error) {
	return remove[corral.Plan](ctx, c, planPath(id), nil)
}

// PlanRevisions returns the changes to the plan's pilots during its run, oldest first.
func (c *Client) PlanRevisions(ctx context.Context, id corral.PlanID) ([]corral.Revision, error) {
	return list[corral.Revision](ctx, c, planPath(id)+"/revisions", nil)
}

// PlanSchedule returns the place and time of each task of the plan, in the format of plan.ReadSchedule. If the goal
// cannot be reached, the schedule is that of the nearest plan.
func (c *Client) PlanSchedule(ctx context.Context, id corral.PlanID) ([]byte, error) {
	return c.do(ctx, call{method: http.MethodGet, path: planPath(id) + "/schedule"})
}

// PlanHistory returns what happened to the plan, oldest first.
func (c *Client) PlanHistory(ctx context.Context, id corral.PlanID) ([]corral.Entry, error) {
	return list[corral.Entry](ctx, c, planPath(id)+"/history", nil)
}
