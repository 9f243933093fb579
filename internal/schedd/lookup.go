package schedd

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/condor"
)

// HTCondor's numbers of what a job is doing.
const (
	statusIdle    = 1
	statusRunning = 2
	statusRemoved = 3
	statusHeld    = 5
)

// look compares what is known with the schedd's queue: before anything is submitted, if something may be there that
// is not known, and now and then.
func (f *feed) look(now time.Time) {
	if f.note.ID == "" || !f.unsure && (now.Before(f.lookupAt) || len(f.jobs) == 0) {
		return
	}
	ctx, cancel := bounded(f.serving)
	defer cancel()
	ads, err := f.q.cfg.Tools.Query(ctx, "condor_q", f.mine(), []string{
		"ClusterId", "ProcId", "JobStatus", "NumJobStarts", "HoldReason", "JobCurrentStartExecutingDate", keyAttribute, workerAttribute,
	})
	f.answered(err)
	if err != nil {
		return
	}
	wasUnsure := f.unsure
	f.unsure = false
	here := map[condor.JobID]bool{}
	for _, ad := range ads {
		f.found(ad, here)
	}
	f.read(time.Now()) // what ended meanwhile said so before it left
	for _, j := range f.jobs {
		f.missed(j, here, now, wasUnsure)
	}
	took := time.Since(now)
	f.lookupAt = now.Add(max(lookupEvery, 20*took))
}

// found takes in one job of the queue.
func (f *feed) found(ad condor.Ad, here map[condor.JobID]bool) {
	cluster, _ := ad.Int("ClusterId")
	proc, _ := ad.Int("ProcId")
	key, _ := ad.Text(keyAttribute)
	id := condor.JobID{Cluster: int(cluster), Proc: int(proc)}
	here[id] = true
	status, _ := ad.Int("JobStatus")
	if status == statusRemoved {
		return
	}
	j := f.submitted(key, id)
	if j == nil {
		f.leaving[id] = true // nobody waits for it
	}
	if j == nil || j.id != id {
		return
	}
	starts, _ := ad.Int("NumJobStarts")
	worker, _ := ad.Text(workerAttribute)
	at, _ := ad.Int("JobCurrentStartExecutingDate")
	reason, _ := ad.Text("HoldReason")
	switch {
	case status == statusHeld:
		j.over(failed, time.Now(), sentence("HTCondor could not run its job", reason))
	case status == statusRunning && starts > 0:
		f.running(j, worker, time.Unix(at, 0))
	case status == statusIdle && starts > 0:
		j.left(lost, time.Now(), "its worker is lost")
	}
	f.touched[j] = true
}

// missed judges a job that the queue should have and has not.
func (f *feed) missed(j *job, here map[condor.JobID]bool, asked time.Time, wasUnsure bool) {
	switch {
	case !j.claimed || j.end != nil || here[j.id]:
		return
	case j.id != none && j.sentAt.Before(asked):
		j.over(vanished, time.Now(), "its job is gone from HTCondor's queue")
	case j.id == none && j.expected && wasUnsure:
		j.over(vanished, time.Now(), "its job is not in HTCondor's queue any more")
	default:
		return
	}
	f.touched[j] = true
}

// remove takes jobs out of the queue that nobody waits for.
func (f *feed) remove() {
	f.disown()
	ids := make([]string, 0, len(f.leaving))
	for id := range f.leaving {
		ids = append(ids, id.String())
	}
	for part := range slices.Chunk(ids, 500) {
		ctx, cancel := bounded(f.serving)
		_, err := f.q.cfg.Tools.Run(ctx, nil, "condor_rm", part...)
		cancel()
		if err := unanswered(err); err != nil {
			f.answered(err)
			return
		}
	}
	clear(f.leaving)
}

// disown gives up jobs from before that the run did not claim.
func (f *feed) disown() {
	if time.Since(f.attached) < f.q.cfg.Claim || f.disowned {
		return
	}
	f.disowned = true
	for _, j := range f.jobs {
		if j.claimed {
			continue
		}
		if j.end == nil {
			f.leaving[j.id] = true
		}
		f.forget(j)
	}
}
