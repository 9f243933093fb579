package matching

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Room is the worker's counterpart of its Slot: the worker's resources for the first job that waits there. Room and
// Slot apply the same rule in the same order, and so agree without a message; they differ only while a message is on
// its way. Only the worker knows which jobs are actually running, so its decision is final, including the decision
// whether the remaining time suffices.
type Room struct {
	Host  corral.Resources // total resources for jobs
	CutAt time.Time        // when running jobs are killed
	Speed corral.Speed     // of the worker's host

	used corral.Resources // resources used by running jobs
}

// A Verdict is the decision about the first job that waits at a worker.
type Verdict uint8

const (
	Keep   Verdict = iota // the job keeps waiting, because there is no room yet
	Start                 // the job starts now
	Return                // the job is returned, because it would be cut
)

// Judge decides about the first job that waits. A job that is larger than the machine starts alone.
func (r *Room) Judge(now time.Time, needs Resources) Verdict {
	switch {
	case !r.Empty() && !r.used.Plus(needs.Resources).FitIn(r.Host):
		return Keep
	case r.Late(now, needs.Time):
		return Return
	}
	return Start
}

// Late reports whether a job with this estimate would be cut if it began now.
func (r *Room) Late(now time.Time, estimate time.Duration) bool {
	return r.CutAt.Sub(now) < r.Speed.Takes(estimate)
}

// Take books a running job.
func (r *Room) Take(needs Resources) { r.used = r.used.Plus(needs.Resources) }

// Free reverses Take when the job has ended.
func (r *Room) Free(needs Resources) { r.used = r.used.Minus(needs.Resources) }

// Empty reports whether no job is running.
func (r *Room) Empty() bool { return r.used.CPUs == 0 }

const (
	killGrace    = 2 * time.Second // tasks are killed this long before a worker's end, but at most a tenth of its time
	resultsBatch = 64              // number of results that justify a message, whatever may follow
	resultDelay  = 5 * time.Millisecond
	leafDelay    = 25 * time.Millisecond
)

// ResultDelay returns how long a result waits at its worker for other results while there are more jobs to run. If no
// other task depends on the finished task, its result only frees room for more jobs, and prefetched jobs bridge that
// gap.
func ResultDelay(leaf bool) time.Duration {
	if leaf {
		return leafDelay
	}
	return resultDelay
}

// CutAfter returns how long a worker that has to leave after endsIn lets tasks run.
func CutAfter(endsIn time.Duration) time.Duration { return endsIn - min(killGrace, endsIn/10) }

// SendNow reports whether a worker sends its results at once; otherwise they wait for other results, for at most
// ResultDelay. A worker must not wait if it has nothing more to start, because its next jobs depend on the results.
// Sending each result separately would cost one message for each of thousands of tasks that take a millisecond.
func SendNow(waiting, results int) bool { return waiting == 0 || results >= resultsBatch }
