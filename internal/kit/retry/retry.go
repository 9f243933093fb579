// Package retry waits before something is tried again, and repeats requests to corrald that got no answer.
//
// For is the wait: it ends with its context, so that nothing that waits outlives what it works for. NewClient returns
// an HTTP client that repeats requests. How long it does depends on the context of a request: by default some seconds,
// with Patiently as long as a restart of corrald takes.
package retry

import (
	"context"
	"time"
)

// For waits for d, and reports false if ctx ends before. A caller that looks at ctx by itself may ignore the answer.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
