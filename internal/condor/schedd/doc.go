// Package schedd implements run.Dispatcher on an HTCondor schedd.
//
// A job of a run becomes one HTCondor job. Its key is a digest of its tasks and their attempts, by which corrald
// recognizes the job after a restart, whatever number the schedd has assigned. A job has a parcel (see package
// transfer) in D/jobs/KEY; on the worker the pilot binary is the job's executor. Config.Dir/RUN contains the run's
// event log and its note, which records the run's name in the schedd.
//
// # Promises
//
// Intent precedes effect: the note and the parcel exist before condor_submit runs. If condor_submit did not answer, or
// corrald was down, the schedd's queue is queried before any job is submitted again.
//
// HTCondor starts each job at most once. A job that HTCondor started but did not finish returns to the run, which
// counts another attempt. So a run's journal is correct without HTCondor's help, and the outputs, which corrald itself
// publishes when a job has ended, are always from the one attempt that the run waits for.
//
// # How it works
//
// Each attached run has a [tracker]: one goroutine that owns the data about the run's jobs and calls the run's sink.
// The decisions are pure and receive the time as an argument; the tracker runs HTCondor's commands and accesses files.
// Its parts are
//
//	mailbox  the run's requests; the only part that other goroutines touch
//	note     the run's name in the schedd, on disk
//	book     the jobs: what an event, or a lookup of the queue, means for each; news for the run; removals
//	outbox   the jobs that wait to be submitted, and the size of the next submission
//	backoff  when HTCondor's commands may run again after one got no answer
//	client   the commands, which are shared with worker jobs (internal/condor/stream)
//	teller   calls the sink repeatedly until the run has accepted the news
//	life     how long the goroutine serves the run, and how long it cleans up afterwards
//
// Facts are obtained from two sources: the event log, which is read ten times a second, and the schedd's queue, which
// is queried at the start, after problems, and every half minute, because events may be missing from a log. A fact that
// arrives a second time has no effect.
package schedd
