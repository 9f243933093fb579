// Package stream runs tasks in an HTCondor pool without an HTCondor job for each.
//
// Instead, worker jobs claim slots, each a program (internal/node/condorworker) that dials home and takes
// tasks over its connection, as the workers of an embedded cluster do: from a dispatcher, by the same matching.
// HTCondor decides who gets a slot; tasks follow each other there within milliseconds.
//
// A Stream is one cluster's. For runs it is a queue: a dispatcher, and beside it a note of who is attached. Behind
// it one goroutine, the keeper, sees to it that there are as many worker jobs as can be used: Decide, which is pure,
// compares what waits with what glideins have free, and with the worker jobs in the schedd's queue.
//
// # Promises
//
// A worker job has a number that no other of its stream had. The number is on disk before the job is submitted, and in
// the job's ad, so that a corrald that was killed in between finds the job by it: what the queue has is looked up
// before anything is submitted.
//
// Whatever becomes of a worker job, its tasks are the dispatcher's: a worker that is asked to leave (condor_rm,
// condor_hold, the end of its glidein) hands them back, and one that is lost loses them with its lease. A corrald that
// starts again finds its workers, or they find it.
package stream
