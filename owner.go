package corral

import (
	"time"
)

// OwnerID identifies an owner's account in histories. An owner whose account was never changed has no id.
type OwnerID int64

// An OwnerState specifies which requests of an owner are served.
type OwnerState string

const (
	OwnerActive    OwnerState = "ACTIVE"    // served; also every owner without a record
	OwnerSuspended OwnerState = "SUSPENDED" // requests are refused and nothing new is submitted; running work finishes
	OwnerEnding    OwnerState = "ENDING"    // the owner's resources at sites and in pools are being removed
	OwnerEnded     OwnerState = "ENDED"     // only records and results are left; the name is not free
)

// OwnerStates lists all states in their order of life.
var OwnerStates = []OwnerState{OwnerActive, OwnerSuspended, OwnerEnding, OwnerEnded}

// An OwnerMove names an event of an owner's life.
type OwnerMove string

const (
	OwnerSuspend OwnerMove = "suspend"
	OwnerResume  OwnerMove = "resume"
	OwnerEnd     OwnerMove = "end"
	OwnerEndDone OwnerMove = "ended"
)

// OwnerMoves lists the moves of an owner.
var OwnerMoves = Table[OwnerState, OwnerMove]{
	{From: []OwnerState{OwnerActive}, Event: OwnerSuspend, To: OwnerSuspended,
		Means: "an administrator suspended it: requests are refused, nothing new is submitted"},
	{From: []OwnerState{OwnerSuspended, OwnerEnded}, Event: OwnerResume, To: OwnerActive,
		Means: "an administrator resumed it; after its end it starts with only its records"},
	{From: []OwnerState{OwnerActive, OwnerSuspended}, Event: OwnerEnd, To: OwnerEnding,
		Means: "an administrator ended it: its tokens are revoked, its resources are removed"},
	{From: []OwnerState{OwnerEnding}, Event: OwnerEndDone, To: OwnerEnded,
		Means: "nothing of it is left at any site or in any pool, and its ssh key is deleted"},
}

// An Owner is a user whose objects a central corrald keeps.
type Owner struct {
	ID        OwnerID    `json:"id,omitempty"` // absent: its account was never changed
	Name      string     `json:"name"`
	State     OwnerState `json:"state"`
	Reason    string     `json:"reason,omitempty"` // the reason for its state
	By        string     `json:"by,omitempty"`     // the user who set its state
	CreatedAt time.Time  `json:"created_at,omitzero"`
	UpdatedAt time.Time  `json:"updated_at,omitzero"`

	Has Holdings `json:"has"`

	// WaitsFor lists the conditions for which the end of the account still waits, one sentence each.
	WaitsFor []string `json:"waits_for,omitempty"`
}

// Holdings count an owner's active objects, and the records of all its runs.
type Holdings struct {
	Tokens    int `json:"tokens"` // neither revoked nor expired
	Sites     int `json:"sites"`
	Clusters  int `json:"clusters"`
	Glideins  int `json:"glideins"`
	Runs      int `json:"runs"`  // not over
	Plans     int `json:"plans"` // that request pilots
	Scales    int `json:"scales"`
	Ensembles int `json:"ensembles"`
	Records   int `json:"records"` // of runs, in any state but DELETED
}

// Refusal explains why no action is taken for the owner, and how to change this; it returns "" if the owner is ACTIVE.
// The text is one sentence, used to refuse the owner's requests and as the reason of waiting glideins, scales and
// plans.
func (o Owner) Refusal() string {
	var why string
	switch o.State {
	case OwnerSuspended:
		why = "is suspended"
	case OwnerEnding:
		why = "is being ended"
	case OwnerEnded:
		why = "has ended"
	default:
		return ""
	}
	said := "the account " + o.Name + " " + why
	if o.Reason != "" {
		said += ": " + o.Reason
	}
	return said + "; ask an administrator"
}

// Apply changes the owner's state by one event; no other code sets State. A move to the current state changes nothing;
// neither does a request to end an owner that has ended.
func (o Owner) Apply(move OwnerMove, by, reason string, now time.Time) (Owner, []Entry, error) {
	from := o.State
	switch {
	case move == OwnerSuspend && from == OwnerSuspended, move == OwnerResume && from == OwnerActive,
		move == OwnerEnd && (from == OwnerEnding || from == OwnerEnded), move == OwnerEndDone && from == OwnerEnded:
		return o, nil, nil
	}
	next, err := OwnerMoves.Next(from, move)
	if err != nil {
		return o, nil, ErrorAt(Conflict, "owner", "%s: %w", o.Name, err)
	}
	if move != OwnerEndDone { // the end keeps the reason and author of its request
		o.Reason, o.By = reason, by
	}
	o.State = next
	if now.After(o.UpdatedAt) { // a clock that was set back must not put times out of order
		o.UpdatedAt = now
	}
	return o, []Entry{{Object: ObjectOwner, Of: int64(o.ID), Event: string(move), From: string(from),
		To: string(next), Reason: reason}}, nil
}
