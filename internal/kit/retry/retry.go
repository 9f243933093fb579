// Package retry waits before a retry, and repeats unanswered requests to corrald.
//
// For waits: the wait ends with its context, so that a waiting goroutine does not outlive its purpose. NewClient
// returns an HTTP client that repeats requests. The context of a request determines for how long: by default a few
// seconds, and with Patiently as long as a restart of corrald takes.
package retry

import (
	"context"
	"time"
)

// For waits for d; it returns false if ctx ends first. A caller that checks ctx itself may ignore the result.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
