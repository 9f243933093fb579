package corral

import (
	"encoding/json"
	"time"
)

// PlanID identifies a plan that corrald made.
type PlanID int64

// PlanLabel is the label by which glideins and runs name the plan that they are of.
const PlanLabel = "plan"

// A PlanState says what became of a plan.
type PlanState string

const (
	PlanInfeasible  PlanState = "INFEASIBLE"  // its goal cannot be reached; it says what can
	PlanReady       PlanState = "READY"       // its pilots may be asked for
	PlanProvisioned PlanState = "PROVISIONED" // its pilots are asked for, each at its time
	PlanReleased    PlanState = "RELEASED"    // its pilots were let go or have ended, and none will follow
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

// A Plan is a plan as corrald keeps it: which pilots to ask for, for which workflow, as a planner's document says. The
// document never changes; what is learned while its run goes on becomes a Revision.
type Plan struct {
	ID          PlanID          `json:"id"`
	Owner       string          `json:"owner"`
	Cluster     ClusterID       `json:"cluster_id"` // that the pilots join
	ClusterName string          `json:"cluster"`
	Workflow    string          `json:"workflow"`
	Digest      string          `json:"digest"`            // sha256:HEX of the document: the same for the same problem
	Document    json.RawMessage `json:"plan,omitempty"`    // see package plan; not in lists
	Summary     json.RawMessage `json:"summary,omitempty"` // of the document, in its place in lists
	Auto        bool            `json:"auto,omitempty"`    // corrald revises it while its run goes on

	Sites map[string]SiteID `json:"-"` // that it was made for, by the names that the document calls them by

	State     PlanState `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// From here the document's times count; zero: not provisioned
	BeganAt   time.Time `json:"began_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Apply moves the plan by one event; no other code sets State.
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
