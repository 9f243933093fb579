package schedd

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/condor/eventlog"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// Names of attributes in the ads of jobs and events.
const (
	runAttribute    = "CorralRunID"
	keyAttribute    = "CorralKey"
	workerAttribute = "MachineAttrCorralWorker0" // HTCondor's name for CorralWorker of the last worker
)

// Numbers of the kinds of events that have additional information in an ad.
const (
	submitEvent  = 0
	executeEvent = 1
)

// event processes one event of the log. The log's own events identify a job only by its id; the job's key and the
// worker that started it are in an event of kind JobAd that follows the log's own event.
func (b *book) event(e eventlog.Event, now time.Time) {
	if ad, ok := e.Detail.(eventlog.JobAd); ok {
		b.adEvent(e, ad.Ad, now)
		return
	}
	j := b.byID[e.Job]
	if j == nil {
		return
	}
	b.touch(j)
	switch d := e.Detail.(type) {
	case eventlog.Transferring:
		j.way.note(d, e.Time)
	case eventlog.Terminated:
		j.way.bytes = d.Received + d.Sent
		j.over(terminated, e.Time, terminatedReason(d))
	case eventlog.Evicted:
		j.away(cut, e.Time, sentence("its worker had to leave", d.Reason), now)
	case eventlog.ReconnectFailed:
		j.over(lost, e.Time, sentence("its worker is lost", d.Reason))
	case eventlog.ShadowException:
		if j.worker != "" { // HTCondor starts only a job that was not started elsewhere
			j.over(lost, e.Time, sentence("HTCondor lost it", d.Message))
		}
	case eventlog.Held:
		j.held(e.Time, d.Reason)
	case eventlog.Aborted:
		j.over(removed, e.Time, sentence("its job was removed from HTCondor's queue", d.Reason))
	}
}

// adEvent processes a JobAd event, which contains a job's key or the worker that started it.
func (b *book) adEvent(e eventlog.Event, ad classad.Ad, now time.Time) {
	key, _ := ad.Text(keyAttribute)
	trigger, _ := ad.Int("TriggerEventTypeNumber")
	if trigger == submitEvent {
		b.submitted(key, e.Job, now)
		return
	}
	worker, _ := ad.Text(workerAttribute)
	j := b.byID[e.Job]
	if j == nil || worker == "" {
		return
	}
	j.host = worker
	if trigger == executeEvent {
		b.started(j, worker, e.Time)
	}
}

// held records that HTCondor has put the job on hold. For the run the job has then ended, because a task never waits
// for a user to release it. The task has failed unless the schedd was killed while it was starting the job: in that
// case the schedd no longer knows the worker whose ad names the executor, which is not the task's fault.
func (j *job) held(at time.Time, why string) {
	if strings.Contains(why, "Cannot expand $$") {
		j.over(lost, at, sentence("its worker is lost", why))
		return
	}
	j.over(failed, at, sentence("HTCondor could not run its job", why))
	if j.end.how == failed && strings.Contains(why, condor.TookMemory) {
		j.end.cause = execution.OverMemory
	}
}

// prefix matches the name of the slot that the schedd puts before a worker's reason; users see this name elsewhere in a
// clearer form.
var prefix = regexp.MustCompile(`^Error from [^ :]+@[^ :]+: `)

// sentence returns a description of an event, followed by HTCondor's reason if there is one.
func sentence(what, why string) string {
	if why = prefix.ReplaceAllString(strings.TrimSpace(why), ""); why == "" {
		return what
	}
	return what + ": " + strings.TrimSuffix(why, ".")
}

func terminatedReason(t eventlog.Terminated) string {
	if t.Signal != 0 {
		return fmt.Sprintf("its executor was killed by signal %d", t.Signal)
	}
	return fmt.Sprintf("its executor ended with status %d", t.ReturnValue)
}
