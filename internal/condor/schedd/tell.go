package schedd

import (
	"log/slog"
	"os"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/transfer"
)

// sinkRest is the pause after a sink failed.
const sinkRest = time.Second

// A teller reports events of the run's jobs to the run: first which workers run the jobs, then how they ended. News
// that the run could not accept is reported again in full.
type teller struct {
	lg     *slog.Logger
	sink   dispatch.Sink
	restAt time.Time // the sink is not called before this time
}

// tell reports the book's news if a report is due.
func (t *teller) tell(b *book, now time.Time) {
	if len(b.touched) == 0 || now.Before(t.restAt) {
		return
	}
	if !t.assigned(b.assignments(now)) || !t.ended(b, b.ended(now)) {
		t.restAt = now.Add(sinkRest)
	}
}

// assigned reports to the run which workers run which jobs. It returns false if the run could not accept the report.
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

// ended reports to the run how jobs ended, and buries the jobs. It returns false if the run could not accept the
// report. The results are reported first, so that only tasks without results return with a job.
func (t *teller) ended(b *book, jobs []*job) bool {
	var results []execution.Result
	back := map[string][]*job{} // :: why → jobs with remaining tasks
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

// unpack moves a job's output, if there may be any, to the run's directory. It may be repeated, because the parcel is
// kept until the run has accepted the results.
func unpack(j *job) (back delivery) {
	if j.end.how != terminated && j.end.how != vanished {
		return back
	}
	if back.results, back.err = transfer.Unpack(j.dir(), j.Job); back.err != nil {
		back.complaint = complaint(j.dir())
	}
	return back
}

// stderrFile is the executor's error output.
const stderrFile = "executor.err"

// complaint returns the end of the executor's error output.
func complaint(dir string) string {
	const most = 500
	text, err := os.ReadFile(dir + "/" + stderrFile)
	if err != nil {
		return ""
	}
	return string(text[max(0, len(text)-most):])
}
