package schedd

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/pool"
)

// tell has the run take note of what became of its jobs.
func (f *feed) tell(now time.Time) {
	if len(f.touched) == 0 {
		return
	}
	if !f.tellAssigned(now) {
		f.restAt = now.Add(sinkRest)
		return
	}
	var ended []*job
	for j := range f.touched {
		switch {
		case j.claimed && j.isOver(now):
			ended = append(ended, j)
		case !j.claimed || j.end == nil:
			delete(f.touched, j)
		}
	}
	if len(ended) > 0 && !f.tellEnded(ended) {
		f.restAt = now.Add(sinkRest)
	}
}

// tellAssigned tells who runs what; false if the run could not take note.
func (f *feed) tellAssigned(now time.Time) bool {
	byWorker := map[string][]*job{}
	for j := range f.touched {
		if j.isOver(now) {
			j.charge()
		}
		if j.claimed && j.worker != "" && j.told != j.worker {
			byWorker[j.worker] = append(byWorker[j.worker], j)
		}
	}
	for worker, jobs := range byWorker {
		if err := f.sink.Assigned(worker, keys(jobs)); err != nil {
			f.lg.Error("recording started jobs", "worker", worker, "jobs", len(jobs), "error", err)
			return false
		}
		for _, j := range jobs {
			j.told = worker
		}
	}
	return true
}

// tellEnded tells how jobs ended; false if the run could not take note, and then the same is told again.
func (f *feed) tellEnded(jobs []*job) bool {
	var results []execution.Result
	back := map[string][]*job{} // :: why → jobs of which something is left
	for _, j := range jobs {
		of, why := f.settle(j)
		results = append(results, of...)
		if why != "" {
			back[why] = append(back[why], j)
		}
	}
	if len(results) > 0 {
		if err := f.sink.Finished(results); err != nil {
			f.lg.Error("recording results", "results", len(results), "error", err)
			return false
		}
	}
	for why, jobs := range back {
		f.sink.Returned(keys(jobs), true, why)
	}
	for _, j := range jobs {
		f.bury(j)
	}
	return true
}

// settle returns the results of a job that ended, and why the rest of it goes back to the run; "" if there is
// no rest.
func (f *feed) settle(j *job) (results []execution.Result, why string) {
	switch j.end.how {
	case terminated, vanished:
		return f.unpack(j)
	case cut:
		if len(j.Tasks) == 1 && j.worker != "" {
			return j.all(execution.Cut, j.end.reason, j.end.at), ""
		}
		return nil, j.end.reason
	case lost:
		return nil, j.end.reason
	case cancelled:
		return j.all(execution.Cancelled, j.end.reason, j.end.at), ""
	}
	return j.all(execution.Failed, j.end.reason, j.end.at), ""
}

// unpack puts into the run's directory what came back of a job.
func (f *feed) unpack(j *job) (results []execution.Result, why string) {
	results, err := pool.Unpack(j.dir(), j.Job)
	switch {
	case errors.Is(err, pool.ErrNoResult) && j.end.how == vanished:
		return nil, j.end.reason
	case err != nil:
		reason := sentence(j.end.reason+" without a result", strings.TrimSpace(j.complaint()))
		return j.all(execution.Failed, reason, j.end.at), ""
	case len(results) < len(j.Tasks):
		return results, "its executor stopped before its last task"
	}
	return results, ""
}

// bury forgets a job that the run knows to be over. Its files go, and it leaves the queue if it is still there.
func (f *feed) bury(j *job) {
	f.forget(j)
	if j.id != none && j.end.how != terminated && j.end.how != vanished && j.end.how != removed {
		f.leaving[j.id] = true
	}
	if err := os.RemoveAll(j.dir()); err != nil {
		f.lg.Warn("files of a job are left", "error", err)
	}
}

// cancelAll takes all jobs out of the queue and returns them. A schedd that does not answer now is asked
// again when the run is detached.
func (f *feed) cancelAll() {
	now := time.Now()
	f.read(now)
	f.tell(now) // what has ended has ended
	if err := f.removeAll(f.serving); err != nil {
		f.lg.Warn("the run's jobs could not be removed yet", "error", err)
	}
	var waiting []*job
	for _, j := range f.jobs {
		switch {
		case !j.claimed || j.end != nil:
		case j.worker == "":
			waiting = append(waiting, j)
		default:
			j.end = &ending{how: cancelled, reason: "cancelled", at: time.Now()}
			f.touched[j] = true
		}
	}
	f.unsent = nil
	if len(waiting) > 0 {
		f.sink.Returned(keys(waiting), false, "cancelled")
	}
	for _, j := range waiting {
		f.forget(j)
	}
}

func keys(jobs []*job) []execution.Key {
	keys := make([]execution.Key, len(jobs))
	for k, j := range jobs {
		keys[k] = j.Key()
	}
	return keys
}
