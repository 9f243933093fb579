// Package record has ensembles as corrald keeps them while it carries them out: many workflows with one budget and one
// deadline, the pilots that may be held for them, and how each workflow stands.
package record

import (
	"encoding/json"
	"time"

	"github.com/corral-pilot/corral"
)

// ID identifies an ensemble that corrald carries out.
type ID int64

// Label is the label by which glideins and runs name the ensemble that they are of.
const Label = "ensemble"

// A State says what an ensemble is doing.
type State string

const (
	Running State = "RUNNING" // workflows are begun, pilots are asked for and let go
	Ending  State = "ENDING"  // nothing more is begun; what runs is cancelled, its pilots are let go
	Ended   State = "ENDED"   // no run and no pilot of it is left
	Deleted State = "DELETED" // tombstone
)

// States lists all states in their order of life.
var States = []State{Running, Ending, Ended, Deleted}

// A Move names an event of an ensemble's life.
type Move string

const (
	Stop   Move = "stop"
	End    Move = "end"
	Remove Move = "remove"
)

// An Ensemble is many workflows, the one of the highest priority first, that corrald carries out with one budget and
// one deadline: which of them are run, and on how many pilots, is decided while it goes on.
type Ensemble struct {
	ID          ID               `json:"id"`
	Owner       string           `json:"owner"`
	Name        string           `json:"name"`
	Cluster     corral.ClusterID `json:"cluster_id"`
	ClusterName string           `json:"cluster"`
	Goal        Goal             `json:"goal"`
	Pilots      Pilots           `json:"pilots"`
	Choice      json.RawMessage  `json:"choice"` // the algorithm with its parameters; see package rehearsal
	Files       string           `json:"-"`      // the folder of its workflows, below that of all ensembles
	Progress
	State     State     `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	CreatedAt time.Time `json:"created_at"` // the deadline counts from here
	EndedAt   time.Time `json:"ended_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Progress is how far an ensemble is.
type Progress struct {
	Members []Member `json:"workflows"` // by priority
	Steps   int      `json:"steps"`     // decisions about pilots that were carried out
	Spent   string   `json:"spent"`     // what its pilots have cost, such as 1.25ch
}

// Completed is how many workflows are.
func (p Progress) Completed() (n int) {
	for _, m := range p.Members {
		if m.Standing == Completed {
			n++
		}
	}
	return n
}

// A Goal is what an ensemble is to keep to.
type Goal struct {
	Budget         string         `json:"budget"`     // as in 40ch: what its pilots may cost
	Deadline       corral.Seconds `json:"deadline_s"` // what ends later does not count
	Algorithm      string         `json:"algorithm"`  // as it was asked for
	Error          string         `json:"error"`      // by which runtimes were expected to err: see sim.ParseSpread
	Seed           uint64         `json:"seed"`
	DefaultRuntime corral.Seconds `json:"default_runtime_s,omitempty"` // of tasks without an estimate
}

// Pilots are those that an ensemble may ask for. Each is of one host.
type Pilots struct {
	Site      string         `json:"site"`
	SiteID    corral.SiteID  `json:"site_id"`
	CPUs      int            `json:"cpus"`
	MemoryMiB int            `json:"memory_mib,omitempty"`
	Walltime  corral.Seconds `json:"walltime_s"`
	Most      int            `json:"most"`       // at a time
	Delay     corral.Seconds `json:"delay_s"`    // from the request to its workers, as it was expected
	Leaving   corral.Seconds `json:"leaving_s"`  // that one takes to go, at most, and is billed for
	Price     string         `json:"price"`      // the site's when the ensemble was made: all is reckoned by it
	Billing   string         `json:"billing"`    // its periods
	Interval  corral.Seconds `json:"interval_s"` // between two decisions about pilots, at most
}

// A Member is a workflow of an ensemble.
type Member struct {
	Workflow string         `json:"workflow"`
	Tasks    int            `json:"tasks"`
	Runtime  corral.Seconds `json:"runtime_s"` // of all its tasks, as estimated
	Standing Standing       `json:"standing"`
	Reason   string         `json:"reason,omitempty"` // why it stands so
	Run      corral.RunID   `json:"run_id,omitempty"` // once it was begun
}

// A Standing says what becomes of a workflow of an ensemble.
type Standing string

const (
	Waiting   Standing = "waiting"   // its turn has not come
	Deferred  Standing = "deferred"  // it was not begun, and is asked about again when another has ended
	Rejected  Standing = "rejected"  // it is not begun
	Begun     Standing = "running"   // it was begun
	Completed Standing = "completed" // all its tasks ended by the deadline
	Missed    Standing = "missed"    // it was begun, and not completed by the deadline
)

// Standings lists all.
var Standings = []Standing{Waiting, Deferred, Rejected, Begun, Completed,
	Missed}

// Apply moves the ensemble by one event; no other code sets State.
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

// later returns the later one: time does not run backwards for an ensemble when a clock is set back.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Moves is the life of an ensemble.
var Moves = corral.Table[State, Move]{
	{From: []State{Running}, Event: Stop, To: Ending,
		Means: "its workflows are over, its deadline or its money is, or that was asked for"},
	{From: []State{Ending}, Event: End, To: Ended, Means: "no run and no pilot of it is left"},
	{From: []State{Ended}, Event: Remove, To: Deleted, Means: "the record is hidden"},
}
