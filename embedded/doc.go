// Package embedded is the personal cluster that corrald runs by itself, without HTCondor. Users call such a cluster
// embedded. Its rooms, from the wire upward:
//
//	wire      messages, frames, connections, dialling: what both ends of a connection share
//	executor  runs tasks as processes: their directories, environments, temporary files
//	parcel    carries the files of a job to a machine that does not see the run's directory, and back
//	dispatch  the Dispatcher: the jobs of runs on one side, connected workers on the other
//	port      where workers and pilots dial in, of HTCondor clusters too; what is asked of pilots
//	worker    the process on a node that takes jobs, for as long as its lease lasts
//	link      the connection of a pilot to the port
//
// A Job (package execution) is what is dispatched: one task, or several that run one after the other. It is queued
// until a worker with enough free cpus, memory and time takes it; then the worker holds it, waiting (prefetched) or
// running, until each of its tasks has a Result or the worker hands it back. A worker is known by its id and by its
// instance, which changes when its process is started again. Jobs belong to runs; a run's Sink receives all their
// events and keeps the journal.
//
// The invariant: a submitted job ends in exactly one way, which is reported to its sink: with results for its tasks or
// by being returned, and no two workers ever run it at the same time. The lease keeps that true when connections break:
// a worker that has had no answer for a lease kills its tasks and publishes nothing more, and only a margin later does
// the dispatcher give its jobs back. A worker that is stopped cannot do that: its supervisor must kill it, with its
// tasks, within that time.
//
// A run's directory is one that its workers see. Where a worker does not see it, the files of each job travel: the
// worker fetches the inputs, and delivers what the tasks leave, over connections of their own (couriers) that carry
// nothing else. Nothing of that is kept for the next job.
//
// The cluster serves one machine and small sites. It has no fair share. Which worker gets which job is decided by
// internal/decide/matching; what the Dispatcher adds is the protocol and the sinks.
//
// The tests of this package are of all rooms together: real workers, a real port and a real dispatcher, in one process
// or in several; or scripted workers in fake time.
package embedded
