package corral

import (
	"fmt"
	"slices"
	"time"
)

// JobID identifies a job in corrald; the site has its own id for it.
type JobID int64

// A JobKind is one of the three kinds of job that Corral runs at a site.
type JobKind string

const (
	SetupJob   JobKind = "setup"   // installs the worker package, once per site
	PilotJob   JobKind = "pilot"   // holds nodes and runs workers: an attempt of a glidein
	CleanupJob JobKind = "cleanup" // removes everything
)

// A JobState describes the progress of a job.
type JobState string

const (
	JobNew       JobState = "NEW"       // the intent is recorded; the site may or may not have the job
	JobSubmitted JobState = "SUBMITTED" // the site accepted it
	JobQueued    JobState = "QUEUED"    // the batch system shows it waiting
	JobRunning   JobState = "RUNNING"   // the batch system shows it running
	JobEnded     JobState = "ENDED"     // ended; see Outcome
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

// An Outcome describes how a job ended.
type Outcome string

const (
	OutcomeDone      Outcome = "done"      // a setup or cleanup job did its work
	OutcomeExpired   Outcome = "expired"   // its walltime ended; the only outcome that --resubmit counts
	OutcomeIdle      Outcome = "idle"      // it had no work for longer than --idle
	OutcomeDrained   Outcome = "drained"   // left on request after finishing its tasks
	OutcomeRemoved   Outcome = "removed"   // cancelled
	OutcomePreempted Outcome = "preempted" // the site reclaimed the nodes
	OutcomeFailed    Outcome = "failed"    // its own error; a retry may help if Transient is set
	OutcomeLost      Outcome = "lost"      // the site has no record of its end
	OutcomeDuplicate Outcome = "duplicate" // another pilot held the attempt's lease
)

// A FailureClass describes the event that must happen before a transient failure can end. A failure of the empty class
// ends by itself.
type FailureClass string

const (
	FailureQuota          FailureClass = "quota"          // the user has reached the site's limit
	FailureAuthentication FailureClass = "authentication" // the site does not accept the user until a person acts
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{OutcomeDone, OutcomeExpired, OutcomeIdle, OutcomeDrained, OutcomeRemoved,
	OutcomePreempted, OutcomeFailed, OutcomeLost, OutcomeDuplicate}

// A Job is one batch job of Corral at a site. A pilot job is an attempt of its glidein.
type Job struct {
	ID          JobID        `json:"id"`
	Kind        JobKind      `json:"kind"`
	Site        SiteID       `json:"site_id"`
	Glidein     GlideinID    `json:"glidein_id,omitempty"` // pilot jobs only
	Number      int          `json:"number"`               // 1 for the first job of its kind for its owner
	Tag         string       `json:"tag"`                  // unique; the batch system reports it back
	SiteJobID   string       `json:"site_job_id,omitempty"`
	Package     string       `json:"package_digest,omitempty"` // of setup jobs: an extra package; empty: the site's
	State       JobState     `json:"state"`
	Outcome     Outcome      `json:"outcome,omitempty"` // set if and only if ENDED
	Transient   bool         `json:"transient,omitempty"`
	Failure     FailureClass `json:"failure_class,omitempty"` // only if Transient
	ExitStatus  *int         `json:"exit_status,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Asked       Ask          `json:"asked,omitempty"`      // later request: drain, cancel
	Workers     int          `json:"workers,omitempty"`    // highest number registered at the same time
	Lost        []LostHost   `json:"lost_hosts,omitempty"` // pilot jobs: hosts that it runs without
	Queue       string       `json:"-"`                    // attempts: the batch system's queue; empty: its default
	LeaseHolder string       `json:"-"`                    // the only pilot process that may start workers
	Session     string       `json:"-"`                    // SHA-256 of the secret shared with its workers, hex
	TokenDigest string       `json:"-"`                    // SHA-256 of its workers' authentication token, hex
	TokenEndsAt time.Time    `json:"-"`
	CreatedAt   time.Time    `json:"created_at"`
	SubmittedAt time.Time    `json:"submitted_at,omitzero"`
	StartedAt   time.Time    `json:"started_at,omitzero"`
	EndedAt     time.Time    `json:"ended_at,omitzero"`
	UpdatedAt   time.Time    `json:"updated_at"`
}

// A JobEvent changes a job's state. Move determines which fields matter: SiteJobID for submit, queue and start;
// Outcome, Transient, Failure, ExitStatus and Lost for end.
type JobEvent struct {
	Move       JobMove
	At         time.Time // when it happened at the site, if known; otherwise when it was seen
	SiteJobID  string
	Outcome    Outcome
	Transient  bool
	Failure    FailureClass // only if Transient
	ExitStatus *int
	Lost       []LostHost // as reported by the job so far
	Reason     string
	Gone       bool // its end was observed: none of its processes runs on any node
}

// Live reports whether the job may still have processes at its site.
func (j Job) Live() bool { return j.State != JobEnded }

// liveOf returns the live jobs. It copies none if the only one is the last one, as is usual for attempts.
func liveOf(jobs []Job) []Job {
	first := 0
	for first < len(jobs) && jobs[first].State == JobEnded {
		first++
	}
	switch first {
	case len(jobs):
		return nil
	case len(jobs) - 1:
		return slices.Clip(jobs[first:])
	}
	return slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return !j.Live() })
}

// intended returns the job as NEW, numbered after the earlier jobs of its kind.
func (j Job) intended(earlier []Job, now time.Time) Job {
	j.ID, j.Number, j.State, j.CreatedAt, j.UpdatedAt = 0, 1, JobNew, now, now
	for _, e := range earlier {
		if e.Kind == j.Kind {
			j.Number = max(j.Number, e.Number+1)
		}
	}
	return j
}

// Apply changes the job's state by one event; no other code sets State. The event's time comes from the site's clock: a
// time before the job's last event or after now is clamped to that range, and zero means now. An end without a start
// (the job lived between two polls) leaves StartedAt zero unless the caller sends the start first.
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
		j.SubmittedAt = j.CreatedAt // the answer was lost: it was submitted at that time, and may have waited since
	}
	switch e.Move {
	case JobStart:
		j.StartedAt = at
	case JobEnd:
		j = j.lose(at, e.Lost...)
		j.EndedAt, j.Outcome, j.Transient, j.ExitStatus = at, e.Outcome, e.Transient, e.ExitStatus
		if j.Transient {
			j.Failure = e.Failure
		}
	}
	j.State, j.Reason, j.UpdatedAt = next, e.Reason, latest(now, j.UpdatedAt)
	entry.To = string(next)
	return j, []Entry{entry}, nil
}

// within clamps the reported time of an event to the range that is possible for j.
func (j Job) within(happened, now time.Time) time.Time {
	now = latest(now, j.UpdatedAt)
	if happened.IsZero() || happened.After(now) {
		return now
	}
	return latest(happened.UTC().Truncate(time.Millisecond), j.CreatedAt, j.SubmittedAt, j.StartedAt)
}

// entry returns a line of the job's history for an event that does not change its state.
func (j Job) entry(event, reason string) Entry {
	state := string(j.State)
	return Entry{Object: ObjectJob, Of: int64(j.ID), Event: event, From: state, To: state, Reason: reason}
}

// Ask records a request to end the job. An ask can only become stronger. A weaker or equal ask, or an ask after the
// job's end, changes nothing and returns no entry.
func (j Job) Ask(ask Ask, reason string, now time.Time) (Job, []Entry, error) {
	if !j.Live() || !ask.exceeds(j.Asked) {
		return j, nil, nil
	}
	j.Asked, j.UpdatedAt = ask, latest(now, j.UpdatedAt)
	return j, []Entry{j.entry(string(ask), reason)}, nil
}

// Lease grants the attempt's lease to holder, the only pilot process that may start workers, and opens its session. The
// session is the digest of a secret that the holder generated and keeps in memory. The same holder may repeat the
// request with the same secret, because an answer may be lost. Lease returns a Conflict error if another process holds
// the lease, or if the job has ENDED, because another attempt may have replaced it. The error does not name the holder:
// with the attempt's token, that name would be half of the credentials of a worker.
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

// over returns the error for a request to a job that has ended.
func (j Job) over() error { return Errorf(Conflict, "%s has ended: %s", j.Name(), j.Outcome) }

// NoteWaits records the reason why the job waits in its site's queue, or why the site has not accepted it yet; ok is
// false if the reason is unchanged. A job that does not wait, or that was asked to end, keeps its reason.
func (j Job) NoteWaits(why string, now time.Time) (_ Job, ok bool) {
	if j.State != JobQueued && j.State != JobNew || j.Asked != AskNothing || j.Reason == why {
		return j, false
	}
	j.Reason, j.UpdatedAt = why, latest(now, j.UpdatedAt)
	return j, true
}

// NoteWorkers records that n workers of an attempt are registered; only the highest number is kept. Jobs of other kinds
// have no workers, so for them a positive n is an Invalid error.
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
		return j, nil, Errorf(Invalid, "%s has %d hosts: there is no host %d", j.Name(), hosts, l.Host)
	}
	known := len(j.Lost)
	if j = j.lose(now, l); len(j.Lost) == known {
		return j, nil, nil
	}
	j.UpdatedAt = latest(now, j.UpdatedAt)
	said := fmt.Sprintf("%s; %d of %d hosts are left", l, hosts-len(j.Lost), hosts)
	return j, []Entry{j.entry("node failed", said)}, nil
}

// Name returns the job's name for people and logs: "attempt 2 of glidein 7", "setup job of site 1".
func (j Job) Name() string {
	if j.Kind == PilotJob {
		return fmt.Sprintf("attempt %d of glidein %d", j.Number, j.Glidein)
	}
	return fmt.Sprintf("%s job of site %d", j.Kind, j.Site)
}
