// Package schedd is a run.Queue on an HTCondor schedd.
//
// A job of a run becomes one HTCondor job, of the same tasks at the same attempts; that is its key, and with
// the key it is known to be the same job whatever its number is after a restart of corrald. What travels with it
// is a parcel (see package pool) in D/jobs/KEY; on the worker the pilot binary is its executor. Config.Dir/RUN
// has the run's event log and what it is called in the schedd.
//
// Intent comes before effect: the parcel is there before condor_submit is run. Where condor_submit gave no
// answer, or corrald was away, the queue is looked up before anything is submitted again.
//
// HTCondor starts each job at most once. What it started and did not finish, it does not start again: the run
// gets it back, and counts another attempt. So a run's journal is right without HTCondor's help, and outputs,
// which corrald publishes itself when a job has ended, come from the one attempt that the run waits for.
//
// A feed is the one goroutine that owns the jobs of a run: it follows the event log, runs HTCondor's commands and
// calls the sink. Every event is a fact that changes nothing when it is repeated. Now and then the queue is
// looked up too, which finds what the log does not tell.
package schedd
