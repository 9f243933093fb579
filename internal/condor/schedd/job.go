package schedd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// jobsDir is the folder of parcels in a run's directory.
const jobsDir = "jobs"

// A job is one of the run's jobs, and what is known of its time in the schedd.
type job struct {
	execution.Job
	key      string
	claimed  bool      // the run waits for it; if not, it is from before a restart, and Job is empty
	expected bool      // the run knows that it was started
	refused  time.Time // since when it could not be submitted; zero: the last attempt did not fail

	id      eventlog.JobID // none: not in the schedd, as far as is known
	sentAt  time.Time      // when id became known
	worker  string         // that started it; "": none did
	host    string         // the worker that it was sent to last, whether or not that started it
	started time.Time
	way     way
	told    string // the worker that the run was told
	end     *ending
}

var none eventlog.JobID

// An ending is how a job's time in the schedd ended, or how we ended it.
type ending struct {
	how    how
	cause  execution.Cause // of a failure, if it has one
	reason string
	at     time.Time

	// unless is until when another ending may still replace this one: HTCondor writes that a job left its worker
	// before it writes why.
	unless time.Time
}

// A how is a kind of ending. It decides what the run gets: results, the job back, or both.
type how int

const (
	terminated how = iota // its executor ended, and what it left is here
	cut                   // its worker left before it ended
	lost                  // its worker is gone
	failed                // HTCondor could not run it
	removed               // somebody took it out of the queue
	vanished              // it left the queue, and the log does not say how
	cancelled             // its run was cancelled
)

// left reports whether the job has left the schedd's queue; after the other endings it may still be there.
func (h how) left() bool { return h == terminated || h == removed || h == vanished }

// A way is when the job's files began to travel, and when they had come; zero: that is not known. bytes are those of
// both directions.
type way struct {
	in, out struct{ from, to time.Time }
	bytes   int64
}

// note takes in a step of the way. A job is started once, so that each has one.
func (w *way) note(step eventlog.Transferring, at time.Time) {
	part := &w.in
	if step.Output {
		part = &w.out
	}
	if step.Done {
		part.to = at
	} else {
		part.from = at
	}
}

// tell adds the way to the results of a job's tasks: that of the inputs to the first, that of the outputs to the last.
// Of a job of which not all is known it tells nothing.
func (w *way) tell(results []execution.Result) {
	for _, at := range []time.Time{w.in.from, w.in.to, w.out.from, w.out.to} {
		if at.IsZero() || len(results) == 0 {
			return
		}
	}
	results[0].Travel = execution.Travel{In: w.in.to.Sub(w.in.from), Bytes: w.bytes}
	results[len(results)-1].Travel.Out = w.out.to.Sub(w.out.from)
}

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

// over records how the job ended. The first ending counts, unless HTCondor may still explain it by another.
func (j *job) over(h how, at time.Time, reason string) {
	if j.end == nil || !j.end.unless.IsZero() {
		j.end = &ending{how: h, reason: reason, at: at}
	}
}

// explainTime is how long HTCondor has, after the event that a job left its worker, for the one that says why.
const explainTime = 3 * time.Second

// away records that the job left its worker. Another ending that becomes known within explainTime of now replaces
// this one.
func (j *job) away(h how, at time.Time, reason string, now time.Time) {
	if j.end == nil {
		j.end = &ending{how: h, reason: reason, at: at, unless: now.Add(explainTime)}
	}
}

// isOver reports whether it is certain at now how the job ended.
func (j *job) isOver(now time.Time) bool { return j.end != nil && !now.Before(j.end.unless) }

// charge names a worker for a job that may have run although no event said where: the run's journal counts an
// attempt as begun only if it was assigned to a worker.
func (j *job) charge() {
	switch j.end.how {
	case terminated, cut, lost, vanished:
		if j.worker == "" && !j.expected {
			j.worker = cmp.Or(j.host, "unknown")
		}
	}
}

// A delivery is what came back of a job that may have come to its end: the results of the tasks that were begun, or
// err, with the end of what the executor complained about.
type delivery struct {
	results   []execution.Result
	err       error
	complaint string
}

// settle returns the results of a job that is over, and why the rest of it goes back to the run; "" if there is no
// rest. back is what came back after the job terminated or vanished; after other endings nothing does.
func (j *job) settle(back delivery) (results []execution.Result, why string) {
	switch how := j.end.how; {
	case how == lost, how == vanished && errors.Is(back.err, parcel.ErrNoResult):
		return nil, j.end.reason
	case how == cut && (len(j.Tasks) > 1 || j.worker == ""): // it is not known which task was cut, or whether any was
		return nil, j.end.reason
	case how == cut:
		return j.all(execution.Cut, j.end.reason), ""
	case how == cancelled:
		return j.all(execution.Cancelled, j.end.reason), ""
	case how == failed, how == removed:
		return j.all(execution.Failed, j.end.reason), ""
	case back.err != nil:
		return j.all(execution.Failed, sentence(j.end.reason+" without a result", back.complaint)), ""
	}
	j.way.tell(back.results)
	if len(back.results) < len(j.Tasks) {
		return back.results, "its executor stopped before its last task"
	}
	return back.results, ""
}

// all returns the job's ending, for that reason, as the result of each of its tasks.
func (j *job) all(status execution.Status, reason string) []execution.Result {
	results := make([]execution.Result, len(j.Tasks))
	for i, t := range j.Tasks {
		results[i] = execution.Result{
			Key: j.Key(), Index: t.Index, Attempt: t.Attempt, Status: status, Exit: -1, Reason: reason,
			Cause: j.end.cause, Worker: j.worker, StartedAt: j.started, EndedAt: j.end.at,
		}
	}
	return results
}

// keys returns the names by which the run knows jobs.
func keys(jobs []*job) []execution.Key {
	keys := make([]execution.Key, len(jobs))
	for k, j := range jobs {
		keys[k] = j.Key()
	}
	return keys
}
