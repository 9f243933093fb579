package schedd

import (
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// noted reports whether the note exists by which submitted jobs can be found again; if not, it tries to write the note.
// Jobs that wait too long for the note have failed.
func (t *tracker) noted(now time.Time) bool {
	if t.note.trouble == nil || len(t.outbox.jobs) == 0 {
		return true
	}
	t.keepNote(t.outbox.jobs[0].Job.Dir)
	if t.note.trouble == nil {
		return true
	}
	for _, j := range t.outbox.clear() {
		t.postpone(j, now, t.note.trouble)
	}
	t.wait(notNow, t.note.trouble)
	return false
}

// notNow is the log message for problems on our side.
const notNow = "jobs cannot be submitted now"

// postpone retries a job that cannot be submitted at now, unless the job has waited too long.
func (t *tracker) postpone(j *job, now time.Time, why error) {
	if !t.outbox.postpone(j, now) {
		t.book.fail(j, now, unprepared(why))
	}
}

// unprepared returns the reason of a job that failed on our side, before it was submitted to HTCondor.
func unprepared(why error) string { return "its job could not be prepared: " + why.Error() }

// submit submits the jobs that the schedd does not have yet. It waits while the book is unsure, because the schedd may
// already have some of these jobs and would run them twice.
func (t *tracker) submit() {
	for len(t.outbox.jobs) > 0 && !t.book.unsure && t.life.serving.Err() == nil {
		if time.Now().Before(t.backoff.until) {
			return
		}
		if jobs := t.pack(t.outbox.next(), time.Now()); len(jobs) > 0 && !t.send(jobs) {
			return
		}
	}
}

// pack creates the parcels of the jobs in batch that still wait, and returns these jobs. If the disk is full, it stops
// and puts back the remaining jobs.
func (t *tracker) pack(batch []*job, now time.Time) (jobs []*job) {
	for k, j := range batch {
		if !t.book.waits(j) {
			continue
		}
		switch err := transfer.Pack(context.Background(), j.dir(), j.Job); {
		case err == nil:
			jobs = append(jobs, j)
		case transfer.Passing(err):
			t.outbox.putBack(batch[k+1:])
			t.postpone(j, now, err)
			t.wait(notNow, err)
			return jobs
		default:
			t.book.fail(j, now, unprepared(err))
		}
	}
	return jobs
}

// send submits jobs, and returns false if no more jobs should be submitted now. There are three possible outcomes:
// HTCondor accepted the jobs, refused them without any effect, or did not answer and may have accepted them.
func (t *tracker) send(jobs []*job) bool {
	d := description{t.run, t.note.ID, t.log.Path, t.cfg.Lease}
	cluster, err := t.client.Submit(t.life.serving, d.of(jobs))
	var no *condor.Refused
	switch {
	case err == nil:
		t.outbox.accepted(jobs)
		for k, j := range jobs {
			t.book.submitted(j.key, eventlog.JobID{Cluster: cluster, Proc: k}, time.Now())
		}
		t.answered(nil)
		t.backoff.said = ""
		return true
	case !errors.As(err, &no) && !errors.Is(err, condor.ErrUnquotable):
		t.book.doubt() // the schedd may have accepted the jobs all the same
		t.outbox.putBack(jobs)
		t.answered(err)
		return false
	}
	switch t.outbox.refused(jobs, err, time.Now()) {
	case halve:
		return true
	case giveUp:
		t.book.fail(jobs[0], time.Now(), "its job could not be submitted: "+err.Error())
		return true
	}
	t.wait("HTCondor accepts no jobs now", err)
	return false
}
