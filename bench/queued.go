package main

// The memory of a task that waits in corrald is measured as follows: a corrald without workers receives a run with very
// many tasks; the growth of its resident memory is divided by their number. corrald cannot report when it has queued
// all of them, so this is assumed to be when it becomes quiet.

import (
	"context"
	"errors"
	"time"

	"github.com/corral-pilot/corral"
)

// A queued contains the measurements of a corrald with a run whose tasks all wait for a worker.
type queued struct {
	tasks    int
	document int           // bytes of the workflow
	answered time.Duration // from the request until the answer
	quiet    time.Duration // from the request until corrald is quiet: all tasks are queued
	empty    memory        // before the request
	full     memory        // when corrald is quiet
}

// bytesPerTask returns the growth of the resident memory for each task.
func (q queued) bytesPerTask() int64 { return (q.full.now - q.empty.now) << 10 / int64(q.tasks) }

// measureQueued submits n tasks to a separate corrald without workers.
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

// quietFor is how long corrald must have been nearly idle to count as quiet; its periodic work in every second uses
// less than quietTicks of processor time.
const (
	quietFor   = 500 * time.Millisecond
	quietTicks = 3 * clockTick
)

// quiet returns when corrald became quiet: the beginning of the first period of quietFor in which it used at most
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
