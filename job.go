package corral

import (
	"fmt"
	"time"
)

// JobID identifies a job of ours; the site has its own id for it.
type JobID int64

// A JobKind is one of the three kinds of job that Corral runs at a site.
type JobKind string

const (
	SetupJob   JobKind = "setup"   // installs the worker package, once per site
	PilotJob   JobKind = "pilot"   // holds nodes and runs workers: a glidein's attempt
	CleanupJob JobKind = "cleanup" // removes everything
)

// A JobState says how far a job has come.
type JobState string

const (
	JobNew       JobState = "NEW"       // the intent is recorded; the site may or may not know it
	JobSubmitted JobState = "SUBMITTED" // the site accepted it
	JobQueued    JobState = "QUEUED"    // the batch system shows it waiting
	JobRunning   JobState = "RUNNING"   // the batch system shows it running
	JobEnded     JobState = "ENDED"     // over; Outcome says how
)

// JobStates lists all states in their order of life.
var JobStates = []JobState{JobNew, JobSubmitted, JobQueued, JobRunning, JobEnded}

// A JobMove names an event of a job's life.
type JobMove string

const (
	JobSubmit JobMove = "submit"
	JobQueue  JobMove = "queue"
	JobStart  JobMove = "start"
	JobEnd    JobMove = "end"
)

// An Outcome says how a job ended.
type Outcome string

const (
	OutcomeDone      Outcome = "done"      // a setup or cleanup job did its work
	OutcomeExpired   Outcome = "expired"   // its walltime was over; the only one that --resubmit counts
	OutcomeIdle      Outcome = "idle"      // nothing to do for longer than --idle
	OutcomeDrained   Outcome = "drained"   // asked to finish its tasks and leave
	OutcomeRemoved   Outcome = "removed"   // cancelled
	OutcomePreempted Outcome = "preempted" // the site took the nodes back
	OutcomeFailed    Outcome = "failed"    // its own error; Transient says whether a retry may help
	OutcomeLost      Outcome = "lost"      // the site no longer knows what became of it
	OutcomeDuplicate Outcome = "duplicate" // another pilot held the attempt's lease
)

// Outcomes lists them all.
var Outcomes = []Outcome{OutcomeDone, OutcomeExpired, OutcomeIdle, OutcomeDrained, OutcomeRemoved,
	OutcomePreempted, OutcomeFailed, OutcomeLost, OutcomeDuplicate}

// A Job is one batch job of ours at a site. A pilot job is an attempt of its glidein.
type Job struct {
	ID          JobID      `json:"id"`
	Kind        JobKind    `json:"kind"`
	Site        SiteID     `json:"site_id"`
	Glidein     GlideinID  `json:"glidein_id,omitempty"` // pilot jobs only
	Number      int        `json:"number"`               // 1 for the first of its kind for its owner
	Tag         string     `json:"tag"`                  // unique; the batch system shows it back
	SiteJobID   string     `json:"site_job_id,omitempty"`
	Package     string     `json:"package_digest,omitempty"` // setup jobs: what they install beside the site's own package; empty: that
	State       JobState   `json:"state"`
	Outcome     Outcome    `json:"outcome,omitempty"` // set exactly when ENDED
	Transient   bool       `json:"transient,omitempty"`
	ExitStatus  *int       `json:"exit_status,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Asked       Ask        `json:"asked,omitempty"`      // what was asked of it since: drain, cancel
	Workers     int        `json:"workers,omitempty"`    // most workers that were registered at once
	Lost        []LostHost `json:"lost_hosts,omitempty"` // pilot jobs: hosts that it has to do without
	Queue       string     `json:"-"`                    // attempts: the batch system's queue that was asked for; empty: its default
	LeaseHolder string     `json:"-"`                    // the one pilot process that may start workers
	TokenDigest string     `json:"-"`                    // SHA-256 of the token its workers authenticate with, hex
	TokenEndsAt time.Time  `json:"-"`
	CreatedAt   time.Time  `json:"created_at"`
	SubmittedAt time.Time  `json:"submitted_at,omitzero"`
	StartedAt   time.Time  `json:"started_at,omitzero"`
	EndedAt     time.Time  `json:"ended_at,omitzero"`
	UpdatedAt   time.Time  `json:"updated_at"`
}

// A JobEvent moves a job. Which fields matter depends on Move: SiteJobID for submit, queue and start;
// Outcome, Transient, ExitStatus and Lost for end.
type JobEvent struct {
	Move       JobMove
	At         time.Time // when it happened at the site, if known; else when it was seen
	SiteJobID  string
	Outcome    Outcome
	Transient  bool
	ExitStatus *int
	Lost       []LostHost // as far as the job tells now
	Reason     string
}

// Live reports whether the job may still have processes at its site.
func (j Job) Live() bool { return j.State != JobEnded }

// Apply moves the job by one event; no other code sets State. An end that skips the start (the job
// lived between two polls) leaves StartedAt zero unless the caller sends the start first.
func (j Job) Apply(e JobEvent) (Job, error) {
	next, err := JobMoves.Next(j.State, e.Move)
	if err != nil {
		return j, ErrorAt(Conflict, "job "+j.Tag, "%w", err)
	}
	if (e.Move == JobEnd) != (e.Outcome != "") {
		return j, ErrorAt(Internal, "job "+j.Tag, "%s with outcome %q", e.Move, e.Outcome)
	}
	if e.SiteJobID != "" {
		j.SiteJobID = e.SiteJobID
	}
	switch {
	case e.Move == JobSubmit:
		j.SubmittedAt = e.At
	case j.SubmittedAt.IsZero() && e.Move != JobEnd:
		j.SubmittedAt = j.CreatedAt // the answer was lost: it was asked for then, and may have waited since
	}
	switch e.Move {
	case JobStart:
		j.StartedAt = e.At
	case JobEnd:
		j = j.Lose(e.At, e.Lost...)
		j.EndedAt, j.Outcome, j.Transient, j.ExitStatus = e.At, e.Outcome, e.Transient, e.ExitStatus
	}
	j.State, j.Reason, j.UpdatedAt = next, e.Reason, e.At
	return j, nil
}

// Name is how people and logs call the job: "attempt 2 of glidein 7", "setup job of site 1".
func (j Job) Name() string {
	if j.Kind == PilotJob {
		return fmt.Sprintf("attempt %d of glidein %d", j.Number, j.Glidein)
	}
	return fmt.Sprintf("%s job of site %d", j.Kind, j.Site)
}
