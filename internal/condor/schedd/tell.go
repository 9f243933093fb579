package schedd

import (
	"log/slog"
	"os"
	"time"

	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/embedded/parcel"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// sinkRest is for a sink that failed.
const sinkRest = time.Second

// A teller has the run take note of what became of its jobs: first who runs them, then how they ended. What the run
// could not take note of is told again, in full.
type teller struct {
	lg     *slog.Logger
	sink   dispatch.Sink
	restAt time.Time // the sink is not called before
}

// tell tells what the book has to tell, if it is time to.
func (t *teller) tell(b *book, now time.Time) {
	if len(b.touched) == 0 || now.Before(t.restAt) {
		return
	}
	if !t.assigned(b.assignments(now)) || !t.ended(b, b.ended(now)) {
		t.restAt = now.Add(sinkRest)
	}
}

// assigned tells who runs what; false if the run could not take note.
func (t *teller) assigned(byWorker map[string][]*job) bool {
	for worker, jobs := range byWorker {
		if err := t.sink.Assigned(worker, keys(jobs)); err != nil {
			t.lg.Error("recording started jobs", "worker", worker, "jobs", len(jobs), "error", err)
			return false
		}
		for _, j := range jobs {
			j.told = worker
		}
	}
	return true
}

// ended tells how jobs ended, and buries them; false if the run could not take note. The results come first:
// what comes back of a job is then only the tasks that have none.
func (t *teller) ended(b *book, jobs []*job) bool {
	var results []execution.Result
	back := map[string][]*job{} // :: why → jobs of which something is left
	for _, j := range jobs {
		of, why := j.settle(unpack(j))
		results = append(results, of...)
		if why != "" {
			back[why] = append(back[why], j)
		}
	}
	if len(results) > 0 {
		if err := t.sink.Finished(results); err != nil {
			t.lg.Error("recording results", "results", len(results), "error", err)
			return false
		}
	}
	for why, jobs := range back {
		t.sink.Returned(keys(jobs), true, time.Time{}, why)
	}
	for _, j := range jobs {
		b.bury(j)
		if err := os.RemoveAll(j.dir()); err != nil {
			t.lg.Warn("files of a job are left", "error", err)
		}
	}
	return true
}

// unpack puts into the run's directory what came back of a job, if something may have. It may be repeated: until the
// run has taken note, the parcel stays.
func unpack(j *job) (back delivery) {
	if j.end.how != terminated && j.end.how != vanished {
		return back
	}
	if back.results, back.err = parcel.Unpack(j.dir(), j.Job); back.err != nil {
		back.complaint = complaint(j.dir())
	}
	return back
}

// stderrFile is where the executor complains.
const stderrFile = "executor.err"

// complaint is the end of what the executor had to complain about.
func complaint(dir string) string {
	const most = 500
	text, err := os.ReadFile(dir + "/" + stderrFile)
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-most):])
}
