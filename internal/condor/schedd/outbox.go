package schedd

import (
	"errors"
	"regexp"
	"time"

	"github.com/corral-pilot/corral/condor"
)

// submitSize is the maximum number of jobs in one condor_submit.
const submitSize = 1000

// An outbox holds the jobs that wait to be submitted, in order, and decides which jobs are submitted next after the
// schedd has refused some. condor_submit accepts or refuses all of its jobs together, so one bad job blocks the others:
// size is halved until the bad job is submitted alone, and doubled again when a submission is accepted.
type outbox struct {
	jobs     []*job
	size     int           // maximum size of the next submission
	patience time.Duration // how long a job that cannot be submitted is retried
}

// add appends jobs at the end.
func (o *outbox) add(jobs ...*job) { o.jobs = append(o.jobs, jobs...) }

// putBack inserts jobs at the beginning. It copies the slice, because next returns parts of the same array.
func (o *outbox) putBack(jobs []*job) { o.jobs = append(jobs[:len(jobs):len(jobs)], o.jobs...) }

// next removes and returns the jobs of the next submission.
func (o *outbox) next() []*job {
	jobs := o.jobs[:min(len(o.jobs), o.size)]
	o.jobs = o.jobs[len(jobs):]
	return jobs
}

// clear removes and returns all jobs.
func (o *outbox) clear() (jobs []*job) {
	jobs, o.jobs = o.jobs, nil
	return jobs
}

// postpone moves a job that cannot be submitted at now to the end. It returns false if submissions have been failing
// for so long that the job counts as failed.
func (o *outbox) postpone(j *job, now time.Time) bool {
	if j.refused.IsZero() {
		j.refused = now
	}
	if now.Sub(j.refused) >= o.patience {
		return false
	}
	o.add(j)
	return true
}

// accepted records that the schedd accepted the jobs of a submission.
func (o *outbox) accepted(jobs []*job) {
	for _, j := range jobs {
		j.refused = time.Time{}
	}
	o.size = min(2*o.size, submitSize)
}

// noRoom matches a schedd's message that its queue currently contains too many jobs.
var noRoom = regexp.MustCompile(`exceed MAX_JOBS_\w+|MAX_JOBS_\w+ exceeded`)

// A refusal is the reaction to jobs that HTCondor did not accept: halves are submitted until the bad job is alone.
type refusal int

const (
	halve  refusal = iota // the jobs are submitted again at once, in halves
	giveUp                // the single job has failed
	later                 // the single job is moved behind the others, and no job is submitted for a while
)

// refused puts back jobs that HTCondor did not accept and returns the reaction. A job that HTCondor refuses for a long
// time has failed, unless the schedd has no room, which is the fault of other jobs.
func (o *outbox) refused(jobs []*job, err error, now time.Time) refusal {
	for _, j := range jobs {
		switch {
		case noRoom.MatchString(err.Error()):
			j.refused = time.Time{}
		case j.refused.IsZero():
			j.refused = now
		}
	}
	o.size = max(1, len(jobs)/2)
	if len(jobs) > 1 {
		o.putBack(jobs)
		return halve
	}
	if errors.Is(err, condor.ErrUnquotable) || !o.postpone(jobs[0], now) {
		return giveUp
	}
	return later
}

// The first and the longest pause after an HTCondor command that received no answer; the pause is doubled each time.
const (
	retryMin = 250 * time.Millisecond
	retryMax = 15 * time.Second
)

// silent is the log message for a schedd that does not answer.
const silent = "HTCondor does not answer"

// A backoff determines when HTCondor's commands may run again: the pauses grow as long as the commands fail. It also
// remembers the last log message, so that each message is logged only once, even if a cluster is STOPPED for days.
type backoff struct {
	until time.Time // no command runs before this time
	pause time.Duration
	said  string
}

// wait lengthens the pause from now on and reports whether why is new.
func (b *backoff) wait(why string, now time.Time) (news bool) {
	b.pause = min(max(retryMin, 2*b.pause), retryMax)
	b.until = now.Add(b.pause)
	news = b.said != why
	b.said = why
	return news
}

// answered ends the pauses and reports whether the schedd had not answered before.
func (b *backoff) answered() (back bool) {
	b.pause = 0
	if back = b.said == silent; back {
		b.said = ""
	}
	return back
}
