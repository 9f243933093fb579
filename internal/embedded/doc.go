// Package embedded is the personal cluster that corrald runs itself, without HTCondor. Users call such a cluster
// embedded. Its packages, from the wire upward:
//
//	wire      messages, frames, connections, dialling: shared by both ends of a connection
//	executor  runs tasks as processes: their directories, environments, temporary files
//	parcel    carries a job's files to and from a machine that does not see the run's directory
//	dispatch  the Dispatcher: the jobs of runs on one side, connected workers on the other
//	port      the port where workers and pilots dial in, for HTCondor clusters too; requests to pilots
//	worker    the process on a node that runs jobs for as long as its lease lasts
//	link      the connection of a pilot to the port
//
// The unit of dispatch is a Job (package execution): one task, or several that run one after the other. A job is queued
// until it is assigned to a worker with enough free CPUs, memory and time. The worker then holds the job, waiting
// (prefetched) or running, until each of its tasks has a Result or the worker returns the job. A worker is identified
// by its id and by its instance, which changes when its process is restarted. Jobs belong to runs; a run's Sink
// receives all their events and keeps the journal.
//
// The invariant: a submitted job ends in exactly one way, which is reported to its sink: it has results for its tasks
// or it is returned, and no two workers ever run it at the same time. The lease preserves this when connections break:
// a worker that has received no reply for the length of a lease kills its tasks and publishes nothing more, and the
// dispatcher returns its jobs only a margin later. A suspended worker cannot do this: its supervisor must kill it and
// its tasks within that time.
//
// A run's directory must be visible to its workers. If a worker does not see it, the files of each job travel: the
// worker fetches the inputs and delivers the tasks' output over separate connections (couriers) that carry nothing
// else. None of these files is kept for the next job.
//
// The cluster serves one machine and small sites. It has no fair share. Package internal/decide/matching decides which
// worker gets which job; the Dispatcher adds the protocol and the sinks.
//
// The tests of this package cover all its subpackages together: real workers, a real port and a real dispatcher, in one
// process or in several; or scripted workers in fake time.
package embedded
