package schedd

import (
	"errors"
	"regexp"
	"time"

	"github.com/corral-pilot/corral/condor"
)

// submitSize is how many jobs go in one condor_submit, at most.
const submitSize = 1000

// An outbox holds the jobs that wait to be submitted, in this order, and decides which go next after the schedd has
// refused some. condor_submit takes or refuses all of its jobs, so one bad job spoils a submission for the others:
// size is halved until the bad one stands alone, and doubled again when a submission is accepted.
type outbox struct {
	jobs     []*job
	size     int           // of the next submission, at most
	patience time.Duration // for how long a job is submitted again that cannot be
}

// add puts jobs at the end.
func (o *outbox) add(jobs ...*job) { o.jobs = append(o.jobs, jobs...) }

// putBack puts jobs at the beginning. It copies: next hands out parts of the same array.
func (o *outbox) putBack(jobs []*job) { o.jobs = append(jobs[:len(jobs):len(jobs)], o.jobs...) }

// next takes out the jobs of the next submission.
func (o *outbox) next() []*job {
	jobs := o.jobs[:min(len(o.jobs), o.size)]
	o.jobs = o.jobs[len(jobs):]
	return jobs
}

// clear takes out all jobs.
func (o *outbox) clear() (jobs []*job) {
	jobs, o.jobs = o.jobs, nil
	return jobs
}

// postpone puts a job at the end that cannot be submitted at now, and reports false if that has been so for too
// long: then it has failed.
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

// accepted records that the schedd took the jobs of a submission.
func (o *outbox) accepted(jobs []*job) {
	for _, j := range jobs {
		j.refused = time.Time{}
	}
	o.size = min(2*o.size, submitSize)
}

// noRoom is how a schedd says that it has too many jobs now.
var noRoom = regexp.MustCompile(`exceed MAX_JOBS_\w+|MAX_JOBS_\w+ exceeded`)

// A refusal is what follows for jobs that HTCondor did not take: halves are tried until the job that spoils the others
// is alone.
type refusal int

const (
	halve  refusal = iota // they are submitted again, at once, in halves
	giveUp                // the one job has failed
	later                 // the one job goes after the others, and nothing is submitted for a while
)

// refused puts jobs back that HTCondor did not take, and says what follows. A job that it refuses for long has
// failed, unless the schedd has no room, which is the fault of other jobs.
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

// Pauses after a command of HTCondor that got no answer: the first, doubled each time up to the last.
const (
	retryMin = 250 * time.Millisecond
	retryMax = 15 * time.Second
)

// silent is what is said of a schedd that is away.
const silent = "HTCondor does not answer"

// A backoff says when HTCondor's commands may run again: the longer they are of no use, the later. It also remembers
// what the log says about that, so that it is said once: a cluster may be STOPPED for days.
type backoff struct {
	until time.Time // no command runs before
	pause time.Duration
	said  string
}

// wait lengthens the pause, from now on, and reports whether why is news.
func (b *backoff) wait(why string, now time.Time) (news bool) {
	b.pause = min(max(retryMin, 2*b.pause), retryMax)
	b.until = now.Add(b.pause)
	news = b.said != why
	b.said = why
	return news
}

// answered ends the pauses, and reports whether the schedd was away.
func (b *backoff) answered() (back bool) {
	b.pause = 0
	if back = b.said == silent; back {
		b.said = ""
	}
	return back
}
