package schedd

import (
	"time"

	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
)

// queueAttributes lists the attributes that a lookup requests for each job.
var queueAttributes = []string{
	"ClusterId", "ProcId", "JobStatus", "NumJobStarts", "HoldReason", "JobCurrentStartExecutingDate",
	keyAttribute, workerAttribute,
}

// A lookup is the content of the schedd's queue at the time of the query. It may be older than the book, because jobs
// started and ended while condor_q ran.
type lookup struct {
	asked  time.Time
	unsure bool                    // whether the book was unsure before
	here   map[eventlog.JobID]bool // the jobs in the queue
}

// found processes the ads of the run's jobs in the queue, which was queried at asked. Before missed can judge the jobs
// that are not among them, the log must be read, because a job that ended in the meantime logged its end before it left
// the queue.
func (b *book) found(ads []classad.Ad, asked, now time.Time) lookup {
	l := lookup{asked: asked, unsure: b.unsure, here: map[eventlog.JobID]bool{}}
	b.unsure = false
	for _, ad := range ads {
		id := IDOf(ad)
		l.here[id] = true
		if status, _ := ad.Int("JobStatus"); status != Removed {
			b.inQueue(ad, id, status, now)
		}
	}
	return l
}

// inQueue processes one job in the queue.
func (b *book) inQueue(ad classad.Ad, id eventlog.JobID, status int64, now time.Time) {
	key, _ := ad.Text(keyAttribute)
	j := b.submitted(key, id, now)
	if j == nil {
		b.leaving[id] = true // no run waits for this job
	}
	if j == nil || j.id != id {
		return
	}
	starts, _ := ad.Int("NumJobStarts")
	worker, _ := ad.Text(workerAttribute)
	at, _ := ad.Int("JobCurrentStartExecutingDate")
	reason, _ := ad.Text("HoldReason")
	switch {
	case status == Held:
		j.held(now, reason)
	case status == Running && starts > 0:
		b.started(j, worker, time.Unix(at, 0))
	case status == Idle && starts > 0: // HTCondor will not start the job again (requirements)
		j.away(lost, now, "its worker is lost", now)
	}
	b.touched[j] = true
}

// missed judges the jobs that are missing from the queue: the jobs that were submitted before the query and, if the
// book was unsure, the jobs that were started before a restart according to the run.
func (b *book) missed(l lookup, now time.Time) {
	for _, j := range b.jobs {
		if !j.claimed || j.end != nil || l.here[j.id] {
			continue
		}
		switch {
		case j.id != none && j.sentAt.Before(l.asked):
			j.over(vanished, now, "its job is gone from HTCondor's queue")
		case j.id == none && j.expected && l.unsure:
			j.over(vanished, now, "its job is not in HTCondor's queue any more")
		default:
			continue
		}
		b.touched[j] = true
	}
}
