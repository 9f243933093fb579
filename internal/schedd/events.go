package schedd

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/corral-pilot/corral/condor"
)

// Names of attributes in the ads of jobs and events.
const (
	runAttribute    = "CorralRunID"
	keyAttribute    = "CorralKey"
	workerAttribute = "MachineAttrCorralWorker0" // HTCondor's name for CorralWorker of the last worker
)

// Numbers of the kinds of events whose ad tells more.
const (
	submitEvent  = 0
	executeEvent = 1
)

// read takes in what the event log has to say.
func (f *feed) read(now time.Time) {
	if !f.grown() {
		return
	}
	for event, err := range f.log.New(now) {
		var bad *condor.BadRecord
		switch {
		case errors.As(err, &bad):
			f.lg.Warn("event log is damaged", "error", err)
			f.unsure = true // something may be missing
		case err != nil:
			f.lg.Error("reading the event log", "error", err)
			return
		default:
			f.event(event)
		}
	}
}

// grown reports whether the log is not as it was read.
func (f *feed) grown() bool {
	info, err := os.Stat(f.log.Path)
	if err != nil {
		return false
	}
	return info.Size() != f.log.Place.Offset || info.Sys().(*syscall.Stat_t).Ino != f.log.Place.Inode
}

// event takes in one event. It may have been seen before.
func (f *feed) event(e condor.Event) {
	if ad, ok := e.Detail.(condor.JobAd); ok {
		f.adEvent(e, ad.Ad)
		return
	}
	j := f.byID[e.Job]
	if j == nil {
		return
	}
	f.touched[j] = true
	switch d := e.Detail.(type) {
	case condor.Terminated:
		j.over(terminated, e.Time, terminatedReason(d))
	case condor.Evicted:
		j.left(cut, e.Time, sentence("its worker had to leave", d.Reason))
	case condor.ReconnectFailed:
		j.over(lost, e.Time, sentence("its worker is lost", d.Reason))
	case condor.ShadowException:
		if j.worker != "" { // else it was not started, and HTCondor tries again
			j.over(lost, e.Time, sentence("HTCondor lost it", d.Message))
		}
	case condor.Held:
		j.over(failed, e.Time, sentence("HTCondor could not run its job", d.Reason))
	case condor.Aborted:
		j.over(removed, e.Time, sentence("its job was removed from HTCondor's queue", d.Reason))
	}
}

// adEvent takes in which job an event was about, or where it started.
func (f *feed) adEvent(e condor.Event, ad condor.Ad) {
	key, _ := ad.Text(keyAttribute)
	trigger, _ := ad.Int("TriggerEventTypeNumber")
	if trigger == submitEvent {
		f.submitted(key, e.Job)
		return
	}
	worker, _ := ad.Text(workerAttribute)
	j := f.byID[e.Job]
	if j == nil || worker == "" {
		return
	}
	j.host = worker
	if trigger == executeEvent {
		f.running(j, worker, e.Time)
	}
}

// submitted takes note that the schedd has a job with that key.
func (f *feed) submitted(key string, id condor.JobID) *job {
	j := f.jobs[key]
	switch {
	case key == "" || j == nil && time.Since(f.attached) > f.q.cfg.Claim:
		return nil // of one that was forgotten
	case j == nil:
		j = &job{key: key}
		f.jobs[key] = j
	case j.id == id || j.end != nil:
		return j
	case j.id != none: // twice in the queue, after an answer was lost
		f.leaving[id] = true
		return nil
	}
	j.id, j.sentAt = id, time.Now()
	f.byID[id] = j
	return j
}

func (f *feed) running(j *job, worker string, at time.Time) {
	if worker == "" || j.worker != "" {
		return
	}
	j.worker, j.started = worker, at
	f.touched[j] = true
}
