package corral

import (
	"slices"
	"strings"
	"time"
)

// A Revision describes a change to the pilots of a plan during its run, with reasons. The revisions of a plan are
// numbered from 1 and never change.
type Revision struct {
	ID     int64     `json:"-"`
	Plan   PlanID    `json:"plan_id"`
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	RevisionText
}

// A RevisionText explains a revision to people.
type RevisionText struct {
	Reasons []string      `json:"reasons"`
	Limits  []string      `json:"limits,omitempty"` // that reduced the addition
	News    string        `json:"news,omitempty"`   // late, in time, broke, limited: news for the user
	Added   []PilotChange `json:"added,omitempty"`
	Dropped []PilotChange `json:"dropped,omitempty"`

	End      Seconds `json:"predicted_end_s"` // end of the last task, from the plan's beginning
	Complete bool    `json:"complete"`        // the pilots can run all remaining tasks
	Cost     string  `json:"predicted_cost"`  // of all pilots of the plan
}

// Why returns the reasons for the revision, and the limits that reduced it, for people.
func (r RevisionText) Why() []string {
	if len(r.Limits) == 0 {
		return r.Reasons
	}
	return append(slices.Clip(r.Reasons), "cut by: "+strings.Join(r.Limits, "; "))
}

// A PilotChange names a pilot that was added to a plan or released from it.
type PilotChange struct {
	Pilot   int       `json:"pilot"` // its number in the plan
	Glidein GlideinID `json:"glidein_id"`
	Site    string    `json:"site"`
	Hosts   int       `json:"hosts"`
	CPUs    int       `json:"cpus"`          // per host
	Ask     Ask       `json:"ask,omitempty"` // drain or cancel, for a released pilot
	Why     string    `json:"why,omitempty"`
}

// Revise returns the history entry for a revision of the plan. It returns a Conflict error if the plan is not
// PROVISIONED, because the plan then has no pilots that could change.
func (p Plan) Revise(reason string) (Entry, error) {
	if p.State != PlanProvisioned {
		return Entry{}, ErrorAt(Conflict, "plan", "it is %s: it holds no pilots", p.State)
	}
	return Entry{Object: ObjectPlan, Of: int64(p.ID), Event: "revise", From: string(p.State), To: string(p.State),
		Reason: reason}, nil
}
