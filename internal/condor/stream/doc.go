// Package stream runs tasks in an HTCondor pool without one HTCondor job for each task.
//
// Instead, worker jobs claim slots. Each is a program (internal/node/condorworker) that connects to corrald and
// receives tasks over its connection, like the workers of an embedded cluster: from a dispatcher, by the same
// matching. HTCondor decides which job gets a slot; tasks follow each other there within milliseconds.
//
// A Stream belongs to one cluster. For runs it is a queue: a dispatcher and a list of attached runs. Behind it one
// goroutine, the keeper, maintains as many worker jobs as can be used: Decide, which is pure, compares the waiting
// tasks with the glideins' free resources and with the worker jobs in the schedd's queue.
//
// # Promises
//
// A worker job has a number that is unique in its stream. The number is on disk before the job is submitted, and in
// the job's ad, so if corrald is killed in between, the next one finds the job by its number: the queue is looked up
// before anything is submitted.
//
// Whatever happens to a worker job, its tasks belong to the dispatcher: a worker that is asked to leave (condor_rm,
// condor_hold, the end of its glidein) returns them, and a lost one loses them when its lease expires. A restarted
// corrald finds its workers, or they find it.
package stream
