package queue

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A replica is a queue made from the data that a batch system shows: the running jobs with their latest ends, and the
// waiting jobs in order. Thus a real site has slots that it could advertise, and prices for reservations, like a
// simulated one (plan/sim/advertiser, sim/market), although it supports neither: they show where a pilot would fit
// without delaying other jobs, and when it would start.
//
// A replica counts processors. It ignores nodes, memory, features and hidden jobs, so it is optimistic: a job may wait
// although the count has room. It plans like Slurm's backfill, each job in order of priority at the earliest time at
// which it fits by requested times (conservative backfilling). In reality, other jobs arrive, and some end early.

// unlimited is the assumed runtime of a job without a known limit.
const unlimited = 365 * 24 * time.Hour

// Of returns the replica of a queue from a backlog. Its current instant is that of the backlog.
func Of(seen corral.Backlog) *Queue {
	var now time.Duration // all running jobs have started by then, at 0 or later
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
	var waiting []Job
	for _, j := range seen.Waiting {
		waiting = append(waiting, job(j))
	}
	// Processors that were just taken, or whose node has just failed, are in one list and not yet in the other.
	m := Machine{Processors: max(1, held, seen.Processors), Policy: Conservative}
	q, _ := Resume(m, now, running, waiting)
	return q
}

// job converts a job for planning: it runs for its requested time.
func job(j corral.QueuedJob) Job {
	requested := time.Duration(j.Limit)
	if requested == 0 {
		requested = unlimited
	}
	requested = max(requested, time.Duration(j.Elapsed)+time.Second) // it is about to be ended
	return Job{Processors: max(1, j.Processors), Requested: requested, Runtime: requested}
}
