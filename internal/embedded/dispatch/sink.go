package dispatch

import (
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A Sink is the owner of a run's jobs. Its methods are called from the dispatcher's goroutines, never concurrently for
// one sink, and must not call the dispatcher before they return.
type Sink interface {
	// Assigned is called before jobs are sent to worker; if it fails, they are not sent and stay queued. It records the
	// intent: after a crash, these are the jobs that may be running. A job that was never started may later be assigned
	// to another worker: the last assignment counts.
	Assigned(worker string, jobs []execution.Key) error

	// Finished is called with results before the worker is allowed to delete them; if the call fails, the worker keeps
	// the results and sends them again. Finished must be idempotent, because results are often repeated.
	Finished(results []execution.Result) error

	// Returned is called with jobs that no worker holds any longer and that the dispatcher has forgotten. If started is
	// true, they may have been running when their worker was lost; otherwise they never started. Tasks that were
	// reported Finished before are not affected: the call is about the remaining ones. For started jobs, until is when
	// their worker was last known to be alive; zero means now.
	Returned(jobs []execution.Key, started bool, until time.Time, reason string)
}
