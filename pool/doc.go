// Package pool is the embedded personal cluster: a Dispatcher inside corrald, the worker port through
// which workers dial in, and the worker that runs tasks as real processes.
//
// A Job (package execution) is what is dispatched: one task, or several that run one after the other. It is queued until
// a worker with enough free cpus, memory and time takes it; then the worker holds it, waiting
// (prefetched) or running, until each of its tasks has a Result or it is handed back. A worker is
// known by its id and by its instance, which changes when its process is started anew. Jobs belong to
// runs; a run's Sink is told of everything that happens to them and keeps the journal.
//
// The invariant: a job that was submitted ends in exactly one way that its sink is told of, with
// results for its tasks or by being returned, and no two workers ever run it at the same time. What
// makes that hold when connections break is the lease: a worker that has had no answer for a lease
// kills its tasks and publishes nothing more, and only a margin later does the dispatcher give its
// jobs back. A worker that is stopped cannot do that: who supervises it must kill it, with its tasks,
// within that time.
//
// A run's directory is one that its workers see. Where one does not, the files of each job travel: its inputs are
// fetched, and what its tasks leave is delivered, over connections of their own (couriers) that carry nothing else. Nothing
// of that is kept for the next job.
//
// The package serves one machine and small sites. It has no fair share. Which worker gets which job is decided by
// internal/matching; what the Dispatcher adds is the protocol and the sinks.
package pool
