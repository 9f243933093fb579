package main

// How much memory does a task take that waits in corrald? A corrald without workers gets a run with very many tasks;
// its resident memory before and after, divided by their number, is the answer. When it has queued all of them it
// cannot say, so that is taken to be when it falls quiet.

import (
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral"
)

// A queued is what was measured of a corrald that holds a run whose tasks all wait for a worker.
type queued struct {
	tasks    int
	document int           // bytes of the workflow
	answered time.Duration // from the request until the answer
	quiet    time.Duration // from the request until corrald had nothing left to do: all tasks are queued
	empty    memory        // before
	full     memory        // then
}

// bytesPerTask is what the resident memory grew by for each task.
func (q queued) bytesPerTask() int64 { return (q.full.now - q.empty.now) << 10 / int64(q.tasks) }

// measureQueued submits n tasks to a corrald of its own that has no workers.
func measureQueued(ctx context.Context, dir string, n int) (q queued, err error) {
	document, err := independent(n)
	if err != nil {
		return q, err
	}
	s, err := newStand(ctx, dir)
	defer func() { err = errors.Join(err, s.takeDown()) }()
	if err != nil {
		return q, err
	}
	q.tasks, q.document = n, len(document)
	if q.empty, err = memoryOf(s.self.pid); err != nil {
		return q, err
	}
	began := time.Now()
	if _, err := s.Client.CreateRun(ctx, request(document, corral.RunOptions{}), ""); err != nil {
		return q, err
	}
	q.answered = time.Since(began)
	end, err := s.quiet(ctx)
	if err != nil {
		return q, err
	}
	q.quiet = end.Sub(began)
	q.full, err = memoryOf(s.self.pid)
	return q, err
}

// quietFor is how long corrald must have done next to nothing to count as quiet; what it does in
// every second anyway takes less than quietTicks of processor time.
const (
	quietFor   = 500 * time.Millisecond
	quietTicks = 3 * clockTick
)

// quiet returns when corrald became quiet: the begin of the first span of quietFor in which it used no more than
// quietTicks of processor time.
func (s *stand) quiet(ctx context.Context) (time.Time, error) {
	tick := time.NewTicker(quietFor / 20)
	defer tick.Stop()
	since, used := time.Now(), time.Duration(-1)
	for {
		st, err := statOf(s.self.pid)
		if err != nil {
			return since, err
		}
		now := time.Now()
		if used < 0 || st.self-used > quietTicks {
			since, used = now, st.self
		}
		if now.Sub(since) >= quietFor {
			return since, nil
		}
		select {
		case <-ctx.Done():
			return since, ctx.Err()
		case <-tick.C:
		}
	}
}
