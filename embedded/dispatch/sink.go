package dispatch

import (
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A Sink is the owner of a run's jobs. Its methods are called from the dispatcher's goroutines, never
// two at once for one sink, and must not call back into the dispatcher before they return.
type Sink interface {
	// Assigned is told before jobs are sent to worker; if it fails they are not sent and stay queued.
	// This is the recorded intent: after a crash these are the jobs that may be running. A job that
	// its worker never started may be assigned again, to another: the last one counts.
	Assigned(worker string, jobs []execution.Key) error

	// Finished is told of results before the worker is told to forget them; if it fails the worker
	// keeps and repeats them. Repeated results are normal: it must be idempotent.
	Finished(results []execution.Result) error

	// Returned is told of jobs that no worker has any more and that the dispatcher has forgotten.
	// started: they may have been running when their worker was lost; else they never started. Tasks
	// of theirs that were reported Finished before are not affected: "they" are the others. Of those that
	// were started until says until when their worker was there, as far as is known; zero: until now.
	Returned(jobs []execution.Key, started bool, until time.Time, reason string)
}
