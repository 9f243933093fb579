package corral

import (
	"slices"
	"time"
)

// The kinds of object that have a history.
const (
	ObjectSite     = "site"
	ObjectEnsemble = "ensemble"
	ObjectOwner    = "owner"
	ObjectGlidein  = "glidein"
	ObjectJob      = "job"
	ObjectCluster  = "cluster"
	ObjectRun      = "run"
	ObjectPackage  = "package"
	ObjectMirror   = "mirror"
	ObjectPlan     = "plan"
	ObjectProfile  = "profile"
	ObjectToken    = "token"
)

// An Entry is one line of an object's history: it records a change, its time, and who requested it. A rule returns the
// entries for its changes without ID, At and Actor; the store sets these.
type Entry struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"` // a user, or corrald itself
	Object string    `json:"object"`
	Of     int64     `json:"object_id"`
	Event  string    `json:"event"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Reason string    `json:"reason,omitempty"`
}

// Created returns the first line of an object's history.
func Created(object string, id int64, state string) Entry {
	return Entry{Object: object, Of: id, Event: "create", To: state}
}

// A TimelineEvent is one of the nine events of the original system's timeline (Juve 2012, fig. 2.5).
type TimelineEvent struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	Job  JobID     `json:"job_id"`
}

// timelineNames maps a kind of job to the names of its three events.
var timelineNames = map[JobKind]string{SetupJob: "Setup", PilotJob: "Glidein", CleanupJob: "Cleanup"}

// Timeline returns the events that jobs have reached, in the order of jobs: SetupSubmitted, SetupStarted,
// SetupFinished, GlideinSubmitted … CleanupFinished. Setup, allocation, runtime and cleanup times are differences
// between them.
func Timeline(jobs ...Job) []TimelineEvent {
	var events []TimelineEvent
	for _, j := range jobs {
		name := timelineNames[j.Kind]
		for _, e := range []TimelineEvent{
			{name + "Submitted", j.SubmittedAt, j.ID},
			{name + "Started", j.StartedAt, j.ID},
			{name + "Finished", j.EndedAt, j.ID},
		} {
			if !e.At.IsZero() {
				events = append(events, e)
			}
		}
	}
	return events
}

// A Phase is the time between two events of one job's timeline.
type Phase struct {
	Name     string // setup, allocation, runtime, cleanup
	Job      JobID
	From, To TimelineEvent
}

// phases are the periods that the original system derives from its events.
var phases = []struct{ name, from, to string }{
	{"setup", "SetupSubmitted", "SetupFinished"},
	{"allocation", "GlideinSubmitted", "GlideinStarted"},
	{"runtime", "GlideinStarted", "GlideinFinished"},
	{"cleanup", "CleanupSubmitted", "CleanupFinished"},
}

// Took returns the phase's duration.
func (p Phase) Took() time.Duration { return p.To.At.Sub(p.From.At) }

// Phases returns the phases between events, in the order in which they ended. A phase whose first event is missing is
// omitted.
func Phases(events []TimelineEvent) []Phase {
	var found []Phase
	for _, to := range events {
		for _, p := range phases {
			i := slices.IndexFunc(events, func(from TimelineEvent) bool {
				return from.Job == to.Job && from.Name == p.from
			})
			if p.to == to.Name && i >= 0 {
				found = append(found, Phase{p.name, to.Job, events[i], to})
			}
		}
	}
	return found
}
