package schedd

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A book holds what is known of the jobs of one run: those that the run waits for, and, until claimBy, those that
// the schedd still has from before a restart of corrald. It decides what each fact means and does nothing itself:
// what there is to tell the run waits in touched, what there is to remove from the schedd in leaving.
//
// Facts come from the event log (events.go) and from the schedd's queue (lookup.go). Each may come twice, or late.
type book struct {
	jobs    map[string]*job         // :: key → job
	byID    map[eventlog.JobID]*job // those that are in the schedd, as far as is known
	touched map[*job]bool           // there may be something to tell the run about them
	leaving map[eventlog.JobID]bool // the run does not wait for them: they are to be removed from the schedd
	claimBy time.Time               // until then the run may claim jobs from before a restart; zero: no longer
	unsure  bool                    // the schedd may have jobs that are not in byID: nothing is submitted meanwhile
}

// newBook returns a book without jobs. What is known is learnt from the note, the event log and the queue.
func newBook() book {
	return book{
		jobs: map[string]*job{}, byID: map[eventlog.JobID]*job{},
		touched: map[*job]bool{}, leaving: map[eventlog.JobID]bool{},
	}
}

// open sets until when jobs from before a restart may be claimed, and whether the schedd may have jobs that the book
// does not have.
func (b *book) open(claimBy time.Time, unsure bool) { b.claimBy, b.unsure = claimBy, unsure }

// doubt has the queue looked up before anything else is submitted: the schedd may have jobs that are not in the book.
func (b *book) doubt() { b.unsure = true }

// touch has the run told what is new about a job.
func (b *book) touch(j *job) { b.touched[j] = true }

// leave has a job removed from the schedd.
func (b *book) leave(id eventlog.JobID) { b.leaving[id] = true }

// removed takes in that the schedd has removed all jobs that were to leave.
func (b *book) removed() { clear(b.leaving) }

// claim makes p a job that the run waits for, and returns it if it is new, to be submitted. One that is expected was
// started before a restart, so the queue has to be looked up first. A job may be known already: from before a
// restart, or because the run submits it once more.
func (b *book) claim(p execution.Job, expected bool) (fresh *job) {
	key := keyOf(p)
	j := b.jobs[key]
	if j != nil && j.end != nil && j.end.how == removed && !expected {
		b.forget(j) // the run was cancelled, and then resumed
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

// submitted records that the schedd has a job with a key, and returns that job if the book has it under this id.
// A second job with the same key is in the queue when the answer to a submission was lost: it has to leave.
func (b *book) submitted(key string, id eventlog.JobID, now time.Time) *job {
	j := b.jobs[key]
	switch {
	case key == "" || j == nil && now.After(b.claimBy):
		return nil // forgotten
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

// started records which worker started a job, if that was not known.
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

// cancel ends all jobs that the run waits for. It returns those that no worker has started, which are forgotten; of
// the others there is more to tell.
func (b *book) cancel(now time.Time) (waiting []*job) {
	return b.end(now, func(*job) bool { return true })
}

// kill is cancel of some jobs, which are to leave the schedd, too: others stay there.
func (b *book) kill(now time.Time, is func(*job) bool) (waiting []*job) {
	for _, j := range b.jobs {
		if is(j) && j.claimed && j.end == nil && j.id != none {
			b.leave(j.id)
		}
	}
	return b.end(now, is)
}

// end ends those of the jobs that the run waits for which are so.
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

// withdraw forgets jobs that no worker has started, returns them, and has those leave the queue that are in it.
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

// assignments returns the jobs of which the run does not know yet who started them, by worker.
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

// ended returns the jobs whose end the run does not know yet. A job whose ending HTCondor may still explain stays
// touched; of the others there is no more to tell until something else happens to them.
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

// bury forgets a job that the run knows to be over, and has it leave the queue if it may still be there.
func (b *book) bury(j *job) {
	b.forget(j)
	if j.id != none && !j.end.how.left() {
		b.leave(j.id)
	}
}

// disown gives up the jobs from before a restart that the run did not claim in time.
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

// forget drops a job from everything but leaving: what has to leave the queue is removed whether it is known or not.
func (b *book) forget(j *job) {
	delete(b.jobs, j.key)
	delete(b.byID, j.id)
	delete(b.touched, j)
}
