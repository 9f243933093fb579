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
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// jobsDir is the folder of parcels in a run's directory.
const jobsDir = "jobs"

// A job is one of the run's jobs, together with the state of its HTCondor job.
type job struct {
	execution.Job
	key      string
	claimed  bool      // the run waits for the job; otherwise it dates from before a restart, and Job is empty
	expected bool      // according to the run, the job was started
	refused  time.Time // when its submissions began to fail; zero: the last submission did not fail

	id      eventlog.JobID // none: not known to be in the schedd
	sentAt  time.Time      // when id became known
	worker  string         // the worker that started the job; "": none
	host    string         // the worker to which the job was last sent, whether or not that worker started it
	started time.Time
	way     way
	told    string // the worker reported to the run
	end     *ending
}

var none eventlog.JobID

// An ending describes how HTCondor or corrald ended a job.
type ending struct {
	how    how
	cause  execution.Cause // cause of a failure, if known
	reason string
	at     time.Time

	// unless is the time until which another ending may still replace this one, because HTCondor logs that a job left
	// its worker before it logs the reason.
	unless time.Time
}

// A how is a kind of ending. It determines whether the run receives results, the returned job, or both.
type how int

const (
	terminated how = iota // its executor ended, and its output has been returned
	cut                   // its worker left before it ended
	lost                  // its worker was lost
	failed                // HTCondor could not run the job
	removed               // a user removed the job from the queue
	vanished              // the job left the queue, and the log does not show how
	cancelled             // the run cancelled the job
)

// left reports whether a job with this ending has left the schedd's queue; after the other endings it may still be
// there.
func (h how) left() bool { return h == terminated || h == removed || h == vanished }

// A way records when the transfers of a job's files began and ended; zero times are unknown. bytes is the total of both
// directions.
type way struct {
	in, out struct{ from, to time.Time }
	bytes   int64
}

// note records a step of a transfer. A job is started once, so each step occurs once.
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

// tell adds the transfer times to the results of a job's tasks: the time of the inputs to the first result, the time of
// the outputs to the last. If any time is unknown, tell adds nothing.
func (w *way) tell(results []execution.Result) {
	for _, at := range []time.Time{w.in.from, w.in.to, w.out.from, w.out.to} {
		if at.IsZero() || len(results) == 0 {
			return
		}
	}
	results[0].Travel = execution.Travel{In: w.in.to.Sub(w.in.from), Bytes: w.bytes}
	results[len(results)-1].Travel.Out = w.out.to.Sub(w.out.from)
}

// keyOf identifies a job by its content: its tasks and their attempts.
func keyOf(j execution.Job) string {
	h := sha256.New()
	for i := range j.Tasks {
		fmt.Fprintf(h, "%d.%d %q\n", j.Tasks[i].Index, j.Tasks[i].Attempt, j.Tasks[i].ID)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// dir returns the folder of the job's parcel.
func (j *job) dir() string { return filepath.Join(j.Job.Dir, jobsDir, j.key) }

// over records how the job ended. The first ending counts, unless HTCondor may still replace it with a more precise
// one.
func (j *job) over(h how, at time.Time, reason string) {
	if j.end == nil || !j.end.unless.IsZero() {
		j.end = &ending{how: h, reason: reason, at: at}
	}
}

// explainTime is the maximum delay between the event that a job left its worker and the event that contains the reason.
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

// charge sets a worker for a job that may have run although no event named its worker, because the run's journal counts
// an attempt as begun only if it was assigned to a worker.
func (j *job) charge() {
	switch j.end.how {
	case terminated, cut, lost, vanished:
		if j.worker == "" && !j.expected {
			j.worker = cmp.Or(j.host, "unknown")
		}
	}
}

// A delivery is the returned output of a job that may have completed: the results of the tasks that were started, or
// err, with the end of the executor's error output.
type delivery struct {
	results   []execution.Result
	err       error
	complaint string
}

// settle returns the results of a job that is over, and the reason why the remaining tasks return to the run, or "" if
// no tasks remain. back is the output of a job that terminated or vanished; after other endings there is no output.
func (j *job) settle(back delivery) (results []execution.Result, why string) {
	switch how := j.end.how; {
	case how == lost, how == vanished && errors.Is(back.err, transfer.ErrNoResult):
		return nil, j.end.reason
	case how == cut && (len(j.Tasks) > 1 || j.worker == ""): // it is unknown which task was cut, if any
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

// all returns the job's ending, with the given status and reason, as the result of each of its tasks.
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

// keys returns the keys by which the run identifies the jobs.
func keys(jobs []*job) []execution.Key {
	keys := make([]execution.Key, len(jobs))
	for k, j := range jobs {
		keys[k] = j.Key()
	}
	return keys
}
