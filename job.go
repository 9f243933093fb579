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

// A FailureClass says of a failure that may pass what has to happen first. The empty one passes by itself.
type FailureClass string

const (
	FailureQuota          FailureClass = "quota"          // the user has as much of the site as is allowed
	FailureAuthentication FailureClass = "authentication" // the site does not know the user, until somebody helps
)

// Outcomes lists them all.
var Outcomes = []Outcome{OutcomeDone, OutcomeExpired, OutcomeIdle, OutcomeDrained, OutcomeRemoved,
	OutcomePreempted, OutcomeFailed, OutcomeLost, OutcomeDuplicate}

// A Job is one batch job of ours at a site. A pilot job is an attempt of its glidein.
type Job struct {
	ID          JobID        `json:"id"`
	Kind        JobKind      `json:"kind"`
	Site        SiteID       `json:"site_id"`
	Glidein     GlideinID    `json:"glidein_id,omitempty"` // pilot jobs only
	Number      int          `json:"number"`               // 1 for the first of its kind for its owner
	Tag         string       `json:"tag"`                  // unique; the batch system shows it back
	SiteJobID   string       `json:"site_job_id,omitempty"`
	Package     string       `json:"package_digest,omitempty"` // setup jobs: beside the site's own; empty: that
	State       JobState     `json:"state"`
	Outcome     Outcome      `json:"outcome,omitempty"` // set exactly when ENDED
	Transient   bool         `json:"transient,omitempty"`
	Failure     FailureClass `json:"failure_class,omitempty"` // only if Transient
	ExitStatus  *int         `json:"exit_status,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Asked       Ask          `json:"asked,omitempty"`      // what was asked of it since: drain, cancel
	Workers     int          `json:"workers,omitempty"`    // most workers that were registered at once
	Lost        []LostHost   `json:"lost_hosts,omitempty"` // pilot jobs: hosts that it has to do without
	Queue       string       `json:"-"`                    // attempts: of the batch system; empty: its default
	LeaseHolder string       `json:"-"`                    // the one pilot process that may start workers
	Session     string       `json:"-"`                    // SHA-256 of the secret that it and its workers share, hex
	TokenDigest string       `json:"-"`                    // SHA-256 of the token its workers authenticate with, hex
	TokenEndsAt time.Time    `json:"-"`
	CreatedAt   time.Time    `json:"created_at"`
	SubmittedAt time.Time    `json:"submitted_at,omitzero"`
	StartedAt   time.Time    `json:"started_at,omitzero"`
	EndedAt     time.Time    `json:"ended_at,omitzero"`
	UpdatedAt   time.Time    `json:"updated_at"`
}

// A JobEvent moves a job. Which fields matter depends on Move: SiteJobID for submit, queue and start;
// Outcome, Transient, Failure, ExitStatus and Lost for end.
type JobEvent struct {
	Move       JobMove
	At         time.Time // when it happened at the site, if known; else when it was seen
	SiteJobID  string
	Outcome    Outcome
	Transient  bool
	Failure    FailureClass // only if Transient
	ExitStatus *int
	Lost       []LostHost // as far as the job tells now
	Reason     string
	Gone       bool // its end was seen: nothing of it runs any more, on any node
}

// Live reports whether the job may still have processes at its site.
func (j Job) Live() bool { return j.State != JobEnded }

// intended returns the job as NEW, with the number that follows those of its kind among earlier ones.
func (j Job) intended(earlier []Job, now time.Time) Job {
	j.ID, j.Number, j.State, j.CreatedAt, j.UpdatedAt = 0, 1, JobNew, now, now
	for _, e := range earlier {
		if e.Kind == j.Kind {
			j.Number = max(j.Number, e.Number+1)
		}
	}
	return j
}

// Apply moves the job by one event; no other code sets State. The event's time is what a site's clock said: one
// outside the time between the job's last event and now is moved to its edge, and zero means now. An end that skips
// the start (the job lived between two polls) leaves StartedAt zero unless the caller sends the start first.
func (j Job) Apply(e JobEvent, now time.Time) (Job, []Entry, error) {
	next, err := JobMoves.Next(j.State, e.Move)
	if err != nil {
		return j, nil, ErrorAt(Conflict, "job "+j.Tag, "%w", err)
	}
	if (e.Move == JobEnd) != (e.Outcome != "") {
		return j, nil, ErrorAt(Internal, "job "+j.Tag, "%s with outcome %q", e.Move, e.Outcome)
	}
	at, entry := j.within(e.At, now), j.entry(string(e.Move), e.Reason)
	if e.SiteJobID != "" {
		j.SiteJobID = e.SiteJobID
	}
	switch {
	case e.Move == JobSubmit:
		j.SubmittedAt = at
	case j.SubmittedAt.IsZero() && e.Move != JobEnd:
		j.SubmittedAt = j.CreatedAt // the answer was lost: it was asked for then, and may have waited since
	}
	switch e.Move {
	case JobStart:
		j.StartedAt = at
	case JobEnd:
		j = j.Lose(at, e.Lost...)
		j.EndedAt, j.Outcome, j.Transient, j.ExitStatus = at, e.Outcome, e.Transient, e.ExitStatus
		if j.Transient {
			j.Failure = e.Failure
		}
	}
	j.State, j.Reason, j.UpdatedAt = next, e.Reason, latest(now, j.UpdatedAt)
	entry.To = string(next)
	return j, []Entry{entry}, nil
}

// within returns when an event that was reported for happened can have happened to j.
func (j Job) within(happened, now time.Time) time.Time {
	now = latest(now, j.UpdatedAt)
	if happened.IsZero() || happened.After(now) {
		return now
	}
	return latest(happened.UTC().Truncate(time.Millisecond), j.CreatedAt, j.SubmittedAt, j.StartedAt)
}

// entry is a line of the job's history about something that leaves its state alone.
func (j Job) entry(event, reason string) Entry {
	state := string(j.State)
	return Entry{Object: ObjectJob, Of: int64(j.ID), Event: event, From: state, To: state, Reason: reason}
}

// Ask notes what is asked of the job. An ask only grows; one that does not, or that comes after the job's end, changes
// nothing and has no entry.
func (j Job) Ask(ask Ask, reason string, now time.Time) (Job, []Entry, error) {
	if !j.Live() || !ask.exceeds(j.Asked) {
		return j, nil, nil
	}
	j.Asked, j.UpdatedAt = ask, latest(now, j.UpdatedAt)
	return j, []Entry{j.entry(string(ask), reason)}, nil
}

// Lease gives the attempt's lease to holder, the one pilot process that may start workers, and opens its session: the
// digest of a secret that the holder has made and keeps in memory. The same holder may ask again with the same secret,
// since an answer may be lost. A Conflict error if another holds it, or if the job has ENDED: then another attempt may
// have taken its place.
// The error does not name the holder, since with the attempt's token that name would be half of what admits workers.
func (j Job) Lease(holder, session string, now time.Time) (Job, []Entry, error) {
	switch {
	case !j.Live():
		return j, nil, j.over()
	case j.LeaseHolder == holder && j.Session == session && holder != "":
		return j, nil, nil
	case j.LeaseHolder != "":
		return j, nil, Errorf(Conflict, "%s is leased to another pilot", j.Name())
	case holder == "" || j.Kind != PilotJob:
		return j, nil, Errorf(Invalid, "%s cannot be leased to %q", j.Name(), holder)
	}
	j.LeaseHolder, j.Session, j.UpdatedAt = holder, session, latest(now, j.UpdatedAt)
	return j, []Entry{j.entry("lease", "by "+holder)}, nil
}

// over is the error for what is asked of a job that has ended.
func (j Job) over() error { return Errorf(Conflict, "%s has ended: %s", j.Name(), j.Outcome) }

// NoteWaits notes why the job waits in its site's queue, or why the site has not taken it yet; ok is false if that is
// known. A job that does not wait, or was asked to go, keeps the reason that it has.
func (j Job) NoteWaits(why string, now time.Time) (_ Job, ok bool) {
	if j.State != JobQueued && j.State != JobNew || j.Asked != AskNothing || j.Reason == why {
		return j, false
	}
	j.Reason, j.UpdatedAt = why, latest(now, j.UpdatedAt)
	return j, true
}

// NoteWorkers notes that n workers of an attempt are registered; the most at once is kept. For a job of another kind,
// which has no workers, it is an Invalid error.
func (j Job) NoteWorkers(n int, now time.Time) (Job, []Entry, error) {
	switch {
	case n <= j.Workers:
		return j, nil, nil
	case j.Kind != PilotJob:
		return j, nil, Errorf(Invalid, "%s has no workers", j.Name())
	}
	j.Workers, j.UpdatedAt = n, latest(now, j.UpdatedAt)
	return j, []Entry{j.entry("workers", fmt.Sprintf("%d registered", n))}, nil
}

// LoseHost records that a live attempt, which had the given number of hosts, continues without one of them. Reporting
// the same host again changes nothing.
func (j Job) LoseHost(l LostHost, hosts int, now time.Time) (Job, []Entry, error) {
	switch {
	case !j.Live():
		return j, nil, j.over()
	case l.Host < 0 || l.Host >= hosts:
		return j, nil, Errorf(Invalid, "%s has %d hosts, and none with number %d", j.Name(), hosts, l.Host)
	}
	known := len(j.Lost)
	if j = j.Lose(now, l); len(j.Lost) == known {
		return j, nil, nil
	}
	j.UpdatedAt = latest(now, j.UpdatedAt)
	said := fmt.Sprintf("%s; %d of %d hosts are left", l, hosts-len(j.Lost), hosts)
	return j, []Entry{j.entry("node failed", said)}, nil
}

// Name is how people and logs call the job: "attempt 2 of glidein 7", "setup job of site 1".
func (j Job) Name() string {
	if j.Kind == PilotJob {
		return fmt.Sprintf("attempt %d of glidein %d", j.Number, j.Glidein)
	}
	return fmt.Sprintf("%s job of site %d", j.Kind, j.Site)
}
