package corral

import (
	"slices"
	"strings"
	"time"
)

// A Revision says what was changed about the pilots of a plan while its run went on, and why. Revisions of a plan are
// numbered from 1; none changes once it is made.
type Revision struct {
	ID     int64     `json:"-"`
	Plan   PlanID    `json:"plan_id"`
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	RevisionText
}

// A RevisionText is the explanation of a revision for people.
type RevisionText struct {
	Reasons []string      `json:"reasons"`
	Limits  []string      `json:"limits,omitempty"` // that cut what would have been added
	News    string        `json:"news,omitempty"`   // late, in time, broke, limited: what people have to know
	Added   []PilotChange `json:"added,omitempty"`
	Dropped []PilotChange `json:"dropped,omitempty"`

	End      Seconds `json:"predicted_end_s"` // of the last task, from the plan's beginning
	Complete bool    `json:"complete"`        // the pilots can take all tasks that are left
	Cost     string  `json:"predicted_cost"`  // of all pilots of the plan
}

// Why returns the reasons for the revision, and the limits that cut it, for people.
func (r RevisionText) Why() []string {
	if len(r.Limits) == 0 {
		return r.Reasons
	}
	return append(slices.Clip(r.Reasons), "cut by: "+strings.Join(r.Limits, "; "))
}

// A PilotChange names a pilot that was added to a plan's, or let go.
type PilotChange struct {
	Pilot   int       `json:"pilot"` // its number in the plan
	Glidein GlideinID `json:"glidein_id"`
	Site    string    `json:"site"`
	Hosts   int       `json:"hosts"`
	CPUs    int       `json:"cpus"`          // of each host
	Ask     Ask       `json:"ask,omitempty"` // drain or cancel, of one that was let go
	Why     string    `json:"why,omitempty"`
}

// Revise returns the line of history that a revision leaves of its plan. A plan that is not PROVISIONED has no pilots
// to change: a Conflict error.
func (p Plan) Revise(reason string) (Entry, error) {
	if p.State != PlanProvisioned {
		return Entry{}, ErrorAt(Conflict, "plan", "it is %s: it holds no pilots", p.State)
	}
	return Entry{Object: ObjectPlan, Of: int64(p.ID), Event: "revise", From: string(p.State), To: string(p.State),
		Reason: reason}, nil
}
