// Package record defines the record that corrald keeps of an ensemble while it runs: many workflows with one budget and
// one deadline, the pilots that may be held for them, and the status of each workflow.
package record

import (
	"encoding/json"
	"time"

	"github.com/corral-pilot/corral"
)

// ID identifies an ensemble that corrald runs.
type ID int64

// Label is the key of the label that links glideins and runs to their ensemble.
const Label = "ensemble"

// A State is the lifecycle state of an ensemble.
type State string

const (
	Running State = "RUNNING" // workflows are started; pilots are requested and released
	Ending  State = "ENDING"  // no more workflows are started; runs are cancelled and pilots are released
	Ended   State = "ENDED"   // all its runs and pilots have ended
	Deleted State = "DELETED" // tombstone
)

// States lists all states in lifecycle order.
var States = []State{Running, Ending, Ended, Deleted}

// A Move names a transition between states.
type Move string

const (
	Stop   Move = "stop"
	End    Move = "end"
	Remove Move = "remove"
)

// An Ensemble is a list of workflows, by descending priority, that corrald runs with one budget and one deadline. While
// the ensemble runs, corrald decides which workflows to start and how many pilots to hold.
type Ensemble struct {
	ID          ID               `json:"id"`
	Owner       string           `json:"owner"`
	Name        string           `json:"name"`
	Cluster     corral.ClusterID `json:"cluster_id"`
	ClusterName string           `json:"cluster"`
	Goal        Goal             `json:"goal"`
	Pilots      Pilots           `json:"pilots"`
	Choice      json.RawMessage  `json:"choice"` // the algorithm and its parameters; see package rehearsal
	Files       string           `json:"-"`      // the folder of its workflows, relative to the folder of all ensembles
	Progress
	State     State     `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"` // the deadline is measured from this time
	EndedAt   time.Time `json:"ended_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Progress is the progress of an ensemble.
type Progress struct {
	Members []Member `json:"workflows"` // by priority
	Steps   int      `json:"steps"`     // number of decisions about pilots that were carried out
	Spent   string   `json:"spent"`     // cost of its pilots so far, such as 1.25ch
}

// Completed returns the number of completed workflows.
func (p Progress) Completed() (n int) {
	for _, m := range p.Members {
		if m.Standing == Completed {
			n++
		}
	}
	return n
}

// A Goal holds the constraints of an ensemble, and the assumptions of its algorithm.
type Goal struct {
	Budget         string         `json:"budget"`     // maximum cost of its pilots, such as 40ch
	Deadline       corral.Seconds `json:"deadline_s"` // workflows that end later do not count
	Algorithm      string         `json:"algorithm"`  // as requested
	Error          string         `json:"error"`      // the assumed error of runtime estimates: see sim.ParseSpread
	Seed           uint64         `json:"seed"`
	DefaultRuntime corral.Seconds `json:"default_runtime_s,omitempty"` // for tasks without an estimate
}

// Pilots describes the pilots that an ensemble may request. Each has one host.
type Pilots struct {
	Site      string         `json:"site"`
	SiteID    corral.SiteID  `json:"site_id"`
	CPUs      int            `json:"cpus"`
	MemoryMiB int            `json:"memory_mib,omitempty"`
	Walltime  corral.Seconds `json:"walltime_s"`
	Most      int            `json:"most"`      // maximum at a time
	Delay     corral.Seconds `json:"delay_s"`   // expected time from the request until its workers are ready
	Leaving   corral.Seconds `json:"leaving_s"` // maximum time that a released pilot takes to end, which is also billed
	// The site's price when the ensemble was created, which applies throughout.
	Price    string         `json:"price"`
	Billing  string         `json:"billing"`    // the site's billing periods
	Interval corral.Seconds `json:"interval_s"` // maximum time between two decisions about pilots
}

// A Member is a workflow of an ensemble.
type Member struct {
	Workflow string         `json:"workflow"`
	Tasks    int            `json:"tasks"`
	Runtime  corral.Seconds `json:"runtime_s"` // sum of its tasks' estimates
	Standing Standing       `json:"standing"`
	Reason   string         `json:"reason,omitempty"` // reason for its standing
	Run      corral.RunID   `json:"run_id,omitempty"` // set once it has started
}

// A Standing is the status of a workflow in an ensemble.
type Standing string

const (
	Waiting   Standing = "waiting"   // pending
	Deferred  Standing = "deferred"  // not admitted; considered again when another workflow has ended
	Rejected  Standing = "rejected"  // not admitted
	Begun     Standing = "running"   // running
	Completed Standing = "completed" // all its tasks ended by the deadline
	Missed    Standing = "missed"    // started, but not completed by the deadline
)

// Standings lists all standings.
var Standings = []Standing{Waiting, Deferred, Rejected, Begun, Completed,
	Missed}

// Apply performs one transition; no other code sets State.
func (e Ensemble) Apply(move Move, reason string, now time.Time) (Ensemble, []corral.Entry, error) {
	from := e.State
	next, err := Moves.Next(from, move)
	if err != nil {
		return e, nil, corral.ErrorAt(corral.Conflict, "ensemble", "%w", err)
	}
	e.State, e.UpdatedAt = next, later(now, e.UpdatedAt)
	if reason != "" {
		e.Reason = reason
	}
	if next == Ended {
		e.EndedAt = e.UpdatedAt
	}
	return e, []corral.Entry{{Object: corral.ObjectEnsemble, Of: int64(e.ID), Event: string(move),
		From: string(from), To: string(next), Reason: reason}}, nil
}

// later returns the later time, so that the timestamps of an ensemble do not decrease when a clock is set back.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Moves is the transition table of an ensemble.
var Moves = corral.Table[State, Move]{
	{From: []State{Running}, Event: Stop, To: Ending,
		Means: "its workflows have ended, its deadline has passed, its budget is spent, or a user stopped it"},
	{From: []State{Ending}, Event: End, To: Ended, Means: "all its runs and pilots have ended"},
	{From: []State{Ended}, Event: Remove, To: Deleted, Means: "the record is hidden"},
}
