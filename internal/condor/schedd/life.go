package schedd

import (
	"context"
	"sync"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A request is a request of the run. Exactly one of its fields is set. Requests are kept in order, because jobs
// submitted after a cancellation must not be cancelled.
type request struct {
	submit, expect []execution.Job
	withdraw       []int64 // numbers of jobs
	cancel         bool
	kill           []int64 // numbers of the jobs to kill; the run's other jobs continue
}

// A mailbox holds the run's requests until the tracker's goroutine takes them, so that the run never waits for
// HTCondor.
type mailbox struct {
	filled chan struct{} // capacity one

	mu       sync.Mutex // guards requests
	requests []request
}

// put adds a request and wakes the tracker without waiting for it.
func (m *mailbox) put(r request) {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	select {
	case m.filled <- struct{}{}:
	default:
	}
}

// take empties the mailbox.
func (m *mailbox) take() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	requests := m.requests
	m.requests = nil
	return requests
}

// A life bounds the lifetime of a tracker's goroutine. The goroutine waits until the previous tracker has ended, serves
// its run until it is released, then cleans up after the run, and ends; cancel ends the goroutine at once at any point.
type life struct {
	before  <-chan struct{} // the channel gone of the run's previous tracker, which must clean up first; nil: none
	ctx     context.Context // until cancel
	cancel  context.CancelFunc
	serving context.Context // until cancel or release
	release context.CancelFunc
	done    chan struct{} // closed when the sink is no longer called
	gone    chan struct{} // closed when the goroutine has ended
}

// newLife returns a life that has not begun. Cancelling a life also releases it.
func newLife() life {
	l := life{done: make(chan struct{}), gone: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.serving, l.release = context.WithCancel(l.ctx)
	return l
}

// begin waits for the previous tracker, which may be about to remove jobs and files with the same names as those of
// this tracker. It returns false if ctx ended first.
func (l life) begin(ctx context.Context) bool {
	if l.before == nil {
		return true
	}
	select {
	case <-l.before:
		return true
	case <-ctx.Done():
		return false
	}
}
