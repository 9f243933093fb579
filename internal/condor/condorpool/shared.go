package condorpool

import (
	"slices"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/condor/stream"
)

// A shared holds the part of a keeper that other goroutines use: the commands for its pool, the pool's workers, and the
// job queue. Runs continue to use the queue while the pool is stopped, restarted or upgraded; the queue is closed when
// the cluster is removed or corrald ends.
type shared struct {
	onChange func() // called after workers have changed

	mu      sync.Mutex // guards the fields below
	begun   bool
	retired bool          // no new queue may be created, because it would never be closed
	pool    *condor.Pool  // nil until the pool is found, and always nil for a remote pool
	tools   *condor.Tools // nil until the pool is found
	queue   Submitter
	stream  *stream.Stream // nil until the stream is requested
	workers []corral.Worker
}

// begin reports whether this is the first call; the first caller must run the keeper.
func (s *shared) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.begun
	s.begun = true
	return first
}

// commands returns the commands for the pool, if it has been found.
func (s *shared) commands() (condor.Tools, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil {
		return condor.Tools{}, false
	}
	return *s.tools, true
}

// own returns the pool that the keeper runs, or nil if there is none.
func (s *shared) own() *condor.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pool
}

// found sets the pool and its commands; pool is nil for a remote pool.
func (s *shared) found(pool *condor.Pool, tools condor.Tools) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool, s.tools = pool, &tools
}

// lost records that no pool is available.
func (s *shared) lost() {
	s.mu.Lock()
	s.pool, s.tools = nil, nil
	s.mu.Unlock()
	s.show(nil)
}

// jobQueue returns the job queue of the cluster named place, and creates it if necessary.
func (s *shared) jobQueue(place string, newQueue func() (Submitter, error)) (q Submitter, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.retired:
		return nil, corral.ErrorAt(corral.Unavailable, place, "corrald does not look after it at the moment")
	case s.queue == nil:
		if q, err = newQueue(); err != nil {
			return nil, corral.ErrorAt(corral.Failed, place, "creating its queue: %w", err)
		}
		s.queue = q
	}
	return s.queue, nil
}

// streamQueue similarly returns the stream of the cluster named place.
func (s *shared) streamQueue(place string, open func() (*stream.Stream, error)) (q *stream.Stream, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.retired:
		return nil, corral.ErrorAt(corral.Unavailable, place, "corrald does not look after it at the moment")
	case s.stream == nil:
		if q, err = open(); err != nil {
			return nil, corral.ErrorAt(corral.Failed, place, "creating its stream: %w", err)
		}
		s.stream = q
	}
	return s.stream, nil
}

// streamed returns the stream, or nil if it has not been requested.
func (s *shared) streamed() *stream.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream
}

// forget closes the queues of a removed cluster.
func (s *shared) forget() {
	s.mu.Lock()
	queue, stream := s.queue, s.stream
	s.queue, s.stream = nil, nil
	s.mu.Unlock()
	if stream != nil { // also closed without the lock
		stream.Close()
	}
	if queue != nil { // closed without the lock, because it waits for the queue's goroutines
		queue.Close()
	}
}

// retire also closes the queue once the keeper has ended; callers that still reference the keeper cannot obtain a new
// queue.
func (s *shared) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.forget()
}

// known returns a copy of the known workers.
func (s *shared) known() []corral.Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.workers)
}

// show replaces the known workers and reports whether they changed; a new SeenAt alone is not a change.
func (s *shared) show(workers []corral.Worker) bool {
	s.mu.Lock()
	changed := !slices.EqualFunc(s.workers, workers, func(a, b corral.Worker) bool {
		a.SeenAt = b.SeenAt
		return a == b
	})
	s.workers = workers
	s.mu.Unlock()
	if changed {
		s.onChange()
	}
	return changed
}
