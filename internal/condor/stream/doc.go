// Package stream runs tasks in an HTCondor pool without one HTCondor job for each task.
//
// Instead, worker jobs claim slots. A worker job is a program (internal/node/condorworker) that connects to corrald and
// receives tasks over this connection, like the workers of an embedded cluster: from a dispatcher, by the same
// matching. HTCondor decides which job receives a slot; tasks follow each other in that slot within milliseconds.
//
// A Stream belongs to one cluster. To runs, the Stream is a queue: a dispatcher and a list of attached runs. In the
// background one goroutine, the keeper, maintains as many worker jobs as can be used: Decide, which is pure, compares
// the waiting tasks with the glideins' free resources and with the worker jobs in the schedd's queue.
//
// # Promises
//
// A worker job has a number that is unique in its stream. The number is on disk before the job is submitted, and is
// part of the job's ad. So if corrald is killed in between, the next corrald finds the job by its number: it queries
// the queue before it submits any worker job.
//
// Whatever happens to a worker job, its tasks belong to the dispatcher: a worker that is asked to leave (by condor_rm,
// condor_hold, or the end of its glidein) returns its tasks, and a lost worker loses them when its lease expires. After
// a restart, corrald finds its workers, or they find corrald.
package stream
