package schedd

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A book records one run's jobs: the jobs that the run waits for and, until claimBy, the jobs that remain in the schedd
// from before a restart of corrald. It interprets facts and has no side effects: touched lists the jobs with news for
// the run, and leaving lists the jobs to be removed from the schedd.
//
// Facts are obtained from the event log (events.go) and from the schedd's queue (lookup.go). Each fact may arrive twice
// or late.
type book struct {
	jobs    map[string]*job         // :: key → job
	byID    map[eventlog.JobID]*job // the jobs believed to be in the schedd
	touched map[*job]bool           // jobs that may have news for the run
	leaving map[eventlog.JobID]bool // jobs to be removed from the schedd, because the run does not wait for them
	claimBy time.Time               // deadline for the run to claim jobs from before a restart; zero: passed
	unsure  bool                    // the schedd may have jobs that are not in byID, so nothing is submitted
}

// newBook returns an empty book. It is filled from the note, the event log and the queue.
func newBook() book {
	return book{
		jobs: map[string]*job{}, byID: map[eventlog.JobID]*job{},
		touched: map[*job]bool{}, leaving: map[eventlog.JobID]bool{},
	}
}

// open sets the deadline for claiming jobs from before a restart, and whether the schedd may have jobs that are not
// in the book.
func (b *book) open(claimBy time.Time, unsure bool) { b.claimBy, b.unsure = claimBy, unsure }

// doubt requires a lookup of the queue before further submissions, because the schedd may have jobs that are not in
// the book.
func (b *book) doubt() { b.unsure = true }

// touch marks a job that has news for the run.
func (b *book) touch(j *job) { b.touched[j] = true }

// leave marks a job for removal from the schedd.
func (b *book) leave(id eventlog.JobID) { b.leaving[id] = true }

// removed records that the schedd has removed all marked jobs.
func (b *book) removed() { clear(b.leaving) }

// claim makes p a job that the run waits for. If the job is new, claim returns it for submission. An expected job was
// started before a restart, so the queue must be queried first. A job may already be known from before a restart, or
// because the run submits the job once more.
func (b *book) claim(p execution.Job, expected bool) (fresh *job) {
	key := keyOf(p)
	j := b.jobs[key]
	if j != nil && j.end != nil && j.end.how == removed && !expected {
		b.forget(j) // the run was cancelled and then resumed
		j = nil
	}
	if j == nil {
		j = &job{key: key}
		fresh = j
		b.jobs[key] = j
		b.unsure = b.unsure || expected
	}
	j.Job, j.claimed, j.expected = p, true, expected
	b.touch(j)
	return fresh
}

// waits reports whether a job still waits to be submitted.
func (b *book) waits(j *job) bool { return b.jobs[j.key] == j && j.id == none && j.end == nil }

// submitted records that the schedd has a job with the given key, and returns that job if the book records it under
// this id. If the answer to a submission was lost, the queue may contain a second job with the same key, which must be
// removed.
func (b *book) submitted(key string, id eventlog.JobID, now time.Time) *job {
	j := b.jobs[key]
	switch {
	case key == "" || j == nil && now.After(b.claimBy):
		return nil // the book has forgotten the job
	case j == nil:
		j = &job{key: key}
		b.jobs[key] = j
	case j.id == id || j.end != nil:
		return j
	case j.id != none:
		b.leave(id)
		return nil
	}
	j.id, j.sentAt = id, now
	b.byID[id] = j
	return j
}

// started records the worker that started a job, unless the worker is already known.
func (b *book) started(j *job, worker string, at time.Time) {
	if worker == "" || j.worker != "" {
		return
	}
	j.worker, j.started = worker, at
	b.touch(j)
}

// fail ends a job that HTCondor never ran.
func (b *book) fail(j *job, now time.Time, reason string) {
	j.over(failed, now, reason)
	b.touch(j)
}

// cancel ends all jobs that the run waits for. It forgets and returns the jobs that no worker has started; the other
// jobs still have news for the run.
func (b *book) cancel(now time.Time) (waiting []*job) {
	return b.end(now, func(*job) bool { return true })
}

// kill is like cancel, but only for some of the jobs. These jobs must also be removed from the schedd, because the
// run's other jobs remain there.
func (b *book) kill(now time.Time, is func(*job) bool) (waiting []*job) {
	for _, j := range b.jobs {
		if is(j) && j.claimed && j.end == nil && j.id != none {
			b.leave(j.id)
		}
	}
	return b.end(now, is)
}

// end ends the run's jobs for which is returns true.
func (b *book) end(now time.Time, is func(*job) bool) (waiting []*job) {
	for _, j := range b.jobs {
		switch {
		case !is(j) || !j.claimed || j.end != nil:
		case j.worker == "":
			waiting = append(waiting, j)
			b.forget(j)
		default:
			j.end = &ending{how: cancelled, reason: "cancelled", at: now}
			b.touch(j)
		}
	}
	return waiting
}

// withdraw forgets and returns the given jobs that no worker has started, and marks any of them in the queue for
// removal.
func (b *book) withdraw(seqs []int64) (waiting []*job) {
	for _, j := range b.jobs {
		if !j.claimed || j.end != nil || j.worker != "" || !slices.Contains(seqs, j.Seq) {
			continue
		}
		if j.id != none {
			b.leave(j.id)
		}
		b.forget(j)
		waiting = append(waiting, j)
	}
	return waiting
}

// assignments returns the jobs whose worker has not been reported to the run yet, by worker.
func (b *book) assignments(now time.Time) map[string][]*job {
	byWorker := map[string][]*job{}
	for j := range b.touched {
		if j.isOver(now) {
			j.charge()
		}
		if j.claimed && j.worker != "" && j.told != j.worker {
			byWorker[j.worker] = append(byWorker[j.worker], j)
		}
	}
	return byWorker
}

// ended returns the jobs whose end has not been reported to the run yet. A job whose end HTCondor may still explain
// remains touched; the other jobs have no further news until another event occurs.
func (b *book) ended(now time.Time) (jobs []*job) {
	for j := range b.touched {
		switch {
		case j.claimed && j.isOver(now):
			jobs = append(jobs, j)
		case !j.claimed || j.end == nil:
			delete(b.touched, j)
		}
	}
	return jobs
}

// bury forgets a job whose end was reported to the run, and marks the job for removal if it may still be in the queue.
func (b *book) bury(j *job) {
	b.forget(j)
	if j.id != none && !j.end.how.left() {
		b.leave(j.id)
	}
}

// disown forgets the jobs from before a restart that the run did not claim in time, and marks them for removal.
func (b *book) disown(now time.Time) {
	if b.claimBy.IsZero() || now.Before(b.claimBy) {
		return
	}
	b.claimBy = time.Time{}
	for _, j := range b.jobs {
		if j.claimed {
			continue
		}
		if j.end == nil {
			b.leave(j.id)
		}
		b.forget(j)
	}
}

// forget removes a job from everything but leaving: marked jobs are removed from the queue whether or not they are
// still known.
func (b *book) forget(j *job) {
	delete(b.jobs, j.key)
	delete(b.byID, j.id)
	delete(b.touched, j)
}
