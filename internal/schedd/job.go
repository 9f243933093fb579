package schedd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/execution"
)

// jobsDir is the folder of parcels in a run's directory.
const jobsDir = "jobs"

// A job is one of the run, as far as it is known what the schedd has made of it.
type job struct {
	execution.Job
	key      string
	claimed  bool      // the run waits for it; else it is from before a restart, and Job is empty
	expected bool      // the run knows that it was started
	refused  time.Time // since when, again and again

	id      condor.JobID // none: not submitted, as far as is known
	sentAt  time.Time    // when that became known
	worker  string       // that started it; "": none did
	host    string       // the worker that it was sent to last
	started time.Time
	told    string // the worker that the run was told
	end     *ending
}

var none condor.JobID

// An ending is how a job's time in the schedd ended, or was ended by us.
type ending struct {
	how    how
	reason string
	at     time.Time

	// unless is until when another ending may still take its place: HTCondor writes that a job left its worker
	// before it writes why.
	unless time.Time
}

type how int

const (
	terminated how = iota // its executor ended, and what it left is here
	cut                   // its worker left before it ended
	lost                  // its worker is gone
	failed                // HTCondor could not run it
	removed               // somebody took it out of the queue
	vanished              // nobody knows how
	cancelled             // its run was
)

// keyOf names a job by what it is: its tasks and their attempts.
func keyOf(j execution.Job) string {
	h := sha256.New()
	for i := range j.Tasks {
		fmt.Fprintf(h, "%d.%d %q\n", j.Tasks[i].Index, j.Tasks[i].Attempt, j.Tasks[i].ID)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// dir is the folder of its parcel.
func (j *job) dir() string { return filepath.Join(j.Job.Dir, jobsDir, j.key) }

// over notes how it ended. The first ending counts, but for one that HTCondor may still explain.
func (j *job) over(h how, at time.Time, reason string) {
	if j.end == nil || !j.end.unless.IsZero() {
		j.end = &ending{how: h, reason: reason, at: at}
	}
}

// left notes that it left its worker, who knows why.
func (j *job) left(h how, at time.Time, reason string) {
	if j.end == nil {
		j.end = &ending{how: h, reason: reason, at: at, unless: time.Now().Add(explainTime)}
	}
}

// charge names a worker, if the journal is to learn that the job may have run and nobody said where: a run counts an
// attempt as begun only if it was assigned.
func (j *job) charge() {
	switch j.end.how {
	case terminated, cut, lost, vanished:
		if j.worker == "" && !j.expected {
			j.worker = cmp.Or(j.host, "unknown")
		}
	}
}

// isOver reports whether it is known at now how it ended.
func (j *job) isOver(now time.Time) bool { return j.end != nil && !now.Before(j.end.unless) }

// all returns the same result for each of its tasks.
func (j *job) all(status execution.Status, reason string, at time.Time) []execution.Result {
	results := make([]execution.Result, len(j.Tasks))
	for i, t := range j.Tasks {
		results[i] = execution.Result{
			Key: j.Key(), Index: t.Index, Attempt: t.Attempt, Status: status, Exit: -1, Reason: reason,
			Worker: j.worker, StartedAt: j.started, EndedAt: at,
		}
	}
	return results
}
