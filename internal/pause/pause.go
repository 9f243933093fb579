// Package pause is how a goroutine waits before it tries something again.
package pause

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
