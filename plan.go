package corral

import (
	"encoding/json"
	"time"
)

// PlanID identifies a plan that corrald made.
type PlanID int64

// PlanLabel is the label that names the plan to which a glidein or run belongs.
const PlanLabel = "plan"

// A PlanState specifies whether a plan is feasible and whether its pilots are requested.
type PlanState string

const (
	PlanInfeasible  PlanState = "INFEASIBLE"  // its goal cannot be reached; the plan names a reachable goal
	PlanReady       PlanState = "READY"       // its pilots may be requested
	PlanProvisioned PlanState = "PROVISIONED" // its pilots are requested, each at its time
	PlanReleased    PlanState = "RELEASED"    // its pilots were released or have ended, and none will follow
	PlanDeleted     PlanState = "DELETED"     // tombstone
)

// PlanStates lists all states in their order of life.
var PlanStates = []PlanState{PlanInfeasible, PlanReady, PlanProvisioned, PlanReleased, PlanDeleted}

// A PlanMove names an event of a plan's life.
type PlanMove string

const (
	PlanProvision PlanMove = "provision"
	PlanRelease   PlanMove = "release"
	PlanRemove    PlanMove = "remove"
)

// A Plan is a plan as stored by corrald: the pilots to request for a workflow, as in the planner's document. The
// document never changes; changes made during its run are recorded as Revisions.
type Plan struct {
	ID          PlanID          `json:"id"`
	Owner       string          `json:"owner"`
	Cluster     ClusterID       `json:"cluster_id"` // the cluster that the pilots join
	ClusterName string          `json:"cluster"`
	Workflow    string          `json:"workflow"`
	Digest      string          `json:"digest"`            // sha256:HEX of the document; equal for equal problems
	Document    json.RawMessage `json:"plan,omitempty"`    // see package plan; not in lists
	Summary     json.RawMessage `json:"summary,omitempty"` // of the document, which it replaces in lists
	Auto        bool            `json:"auto,omitempty"`    // corrald revises it during its run

	Sites map[string]SiteID `json:"-"` // sites in the plan, by their names in the document

	State     PlanState `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// BeganAt is the origin of the document's times; zero: not provisioned.
	BeganAt   time.Time `json:"began_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Apply changes the plan's state by one event; no other code sets State.
func (p Plan) Apply(move PlanMove, reason string, now time.Time) (Plan, []Entry, error) {
	from := p.State
	next, err := PlanMoves.Next(from, move)
	if err != nil {
		return p, nil, ErrorAt(Conflict, "plan", "%w", err)
	}
	p.State, p.Reason, p.UpdatedAt = next, reason, latest(now, p.UpdatedAt)
	if move == PlanProvision {
		p.BeganAt = p.UpdatedAt
	}
	return p, []Entry{{Object: ObjectPlan, Of: int64(p.ID), Event: string(move),
		From: string(from), To: string(next), Reason: reason}}, nil
}
