// Package queuemodel plans the queue of a batch system on its nodes, as the site's own backfill does: each job, in
// order of priority, at the earliest time at which enough nodes have room for it, if all jobs run for their requested
// times and no others arrive. It is the one model behind slots, prices, waits, ranks, second pilots and plans.
//
// A Model is made from one look at a queue (corral.Backlog). It knows nodes by name with their cpus and memory, jobs
// on whole nodes, begin times, dependencies, arrays with a limit of running jobs, reservations and maintenance, and
// partitions that share nodes. It does not know features and priorities that change with time. If the look has no
// nodes, or the queue is too large to plan it on nodes, processors are counted (plan/sim/queue); Notes name this.
//
// The invariant: at no instant does a node hold more cpus or more memory than it has. The package is deterministic, and
// uses no clock.
package queuemodel
