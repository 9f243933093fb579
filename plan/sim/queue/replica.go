package queue

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A replica is a queue created from the data that a batch system reports: the running jobs with their latest possible
// ends, and the waiting jobs in order. Slots and prices of reservations can thus be computed for a real site as for a
// simulated one (plan/sim/market), although the real site supports neither: they show where a pilot
// would fit without delaying other jobs, and when the pilot would start.
//
// A replica counts processors. It ignores nodes, memory, features and hidden jobs, so its forecasts are optimistic: a
// job may wait although enough processors are free by count. It plans like Slurm's backfill scheduler: each job, in
// order of priority, at the earliest time at which it fits if all jobs run for their requested times (conservative
// backfilling). In reality, other jobs arrive, and some end early.

// unlimited is the assumed runtime of a job without a known limit.
const unlimited = 365 * 24 * time.Hour

// Of returns a replica of the queue that a backlog describes. The replica's current instant is the instant of the
// backlog.
func Of(seen corral.Backlog) *Queue {
	var now time.Duration // late enough that all running jobs have started at 0 or later
	for _, j := range seen.Running {
		now = max(now, time.Duration(j.Elapsed))
	}
	var running []Held
	for _, j := range seen.Running {
		running = append(running, Held{Job: job(j), Start: now - time.Duration(j.Elapsed)})
	}
	if seen.Hidden > 0 {
		running = append(running, Held{Start: now, Job: job(corral.QueuedJob{Processors: seen.Hidden})})
	}
	held := 0
	for _, h := range running {
		held += h.Processors
	}
	// Processors that were just taken, or whose node has just failed, may count as held without counting in
	// seen.Processors.
	m := Machine{Processors: max(1, held, seen.Processors), Policy: Conservative}
	q, _ := resume(m, now, running, nil)
	q.Enqueue(seen.Waiting)
	return q
}

// Enqueue submits waiting jobs of a backlog in their order, and plans them. Jobs that the machine refuses are dropped.
func (q *Queue) Enqueue(waiting []corral.QueuedJob) {
	for _, j := range waiting {
		q.Submit(job(j))
	}
	q.Advance(q.Now(), nil)
}

// job converts a job of a backlog; for planning, it is assumed to run for its requested time.
func job(j corral.QueuedJob) Job {
	requested := time.Duration(j.Limit)
	if requested == 0 {
		requested = unlimited
	}
	requested = max(requested, time.Duration(j.Elapsed)+time.Second) // a job beyond its limit is about to be ended
	return Job{Processors: max(1, j.Processors), Requested: requested, Runtime: requested}
}
