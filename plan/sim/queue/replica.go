package queue

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Of makes of what a batch system shows of a queue one that can be planned on: who runs until when at
// most, and who waits in which order. So a real site has slots that it could advertise, and prices for reservations, as
// a simulated one has (plan/sim/advertiser, sim/market), although it sells neither: they say where a pilot would fit
// without being in anybody's way, and when it would start.
//
// A replica counts processors. It knows of no nodes, no memory and no features, and of no jobs that are not shown, so
// it is optimistic: a job may wait where the count has room. It plans as Slurm's backfill does, each job in the order
// of priority at the earliest time at which it fits by requested times (conservative backfilling). Jobs come that
// the queue does not show yet, and others end early.

// unlimited is how long a job runs of which no limit is known.
const unlimited = 365 * 24 * time.Hour

// Of returns the replica of a queue as it was seen. Its present is the instant of the backlog.
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
	// Processors that were just taken, or whose node has just gone down, are in one list and not yet in the other.
	m := Machine{Processors: max(1, held, seen.Processors), Policy: Conservative}
	q, _ := Resume(m, now, running, waiting)
	return q
}

// job is one as a queue plans it: for as long as it requests.
func job(j corral.QueuedJob) Job {
	requested := time.Duration(j.Limit)
	if requested == 0 {
		requested = unlimited
	}
	requested = max(requested, time.Duration(j.Elapsed)+time.Second) // it is about to be ended
	return Job{Processors: max(1, j.Processors), Requested: requested, Runtime: requested}
}
