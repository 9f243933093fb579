package schedd

import (
	"context"
	"sync"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// A request is something that the run asked for: one field is set. Requests are kept in their order, since what is
// submitted after a cancellation is not cancelled.
type request struct {
	submit, expect []execution.Job
	withdraw       []int64 // numbers of jobs
	cancel         bool
	kill           []int64 // only these jobs, by their numbers
}

// A mailbox holds the run's requests until the tracker's goroutine takes them: the run never waits for HTCondor.
type mailbox struct {
	filled chan struct{} // has room for one

	mu       sync.Mutex // guards requests
	requests []request
}

// put leaves a request and wakes the tracker, without waiting for it.
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

// A life bounds a tracker's goroutine. It waits until the tracker before it is gone, serves its run until it is
// released, then cleans up after the run, and is gone; cancel ends it at once, wherever it is.
type life struct {
	before  <-chan struct{} // gone of an earlier tracker of the run, which has to clean up first; nil: there is none
	ctx     context.Context // until cancel
	cancel  context.CancelFunc
	serving context.Context // until cancel or release
	release context.CancelFunc
	done    chan struct{} // closed when the sink is called no more
	gone    chan struct{} // closed when the goroutine is gone
}

// newLife returns a life that has not begun. To cancel it also releases it.
func newLife() life {
	l := life{done: make(chan struct{}), gone: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.serving, l.release = context.WithCancel(l.ctx)
	return l
}

// begin waits for the tracker before this one, which is about to remove jobs and files that have the same names as
// this one's; false if ctx ended first.
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
