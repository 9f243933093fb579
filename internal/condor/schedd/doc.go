// Package schedd is a run.Queue on an HTCondor schedd.
//
// A job of a run becomes one HTCondor job. Its key is a digest of its tasks and their attempts: by the key corrald
// recognizes the job after a restart, whatever number the schedd has given it. A job travels with a parcel (see package
// parcel) in D/jobs/KEY; on the worker the pilot binary is its executor. Config.Dir/RUN holds the run's event log and
// its note, which says under what name the schedd knows the run.
//
// # Promises
//
// Intent comes before effect: the note and the parcel exist before condor_submit runs. When condor_submit gave no
// answer, or corrald was away, the schedd's queue is looked up before anything is submitted again.
//
// HTCondor starts each job at most once. A job that it started and did not finish goes back to the run, which counts
// another attempt. So a run's journal is right without HTCondor's help, and outputs, which corrald itself publishes
// when a job has ended, come from the one attempt that the run waits for.
//
// # How it works
//
// Each run that is attached has a [tracker]: one goroutine that owns what is known of the run's jobs and calls the
// run's sink. The decisions are pure and take the time as an argument; the tracker runs HTCondor's commands and
// touches files. Its parts are
//
//	mailbox  what the run asked for; the only part that other goroutines touch
//	note     the run's name in the schedd, on disk
//	book     the jobs: what an event, or a look at the queue, means for each; what to tell the run; what to remove
//	outbox   the jobs that wait to be submitted, and how many go at once
//	backoff  when HTCondor's commands may run again after one got no answer
//	client   the commands, in a package of their own: worker jobs (internal/condor/stream) have them, too
//	teller   calls the sink, again and again until the run has taken note
//	life     how long the goroutine serves the run, and how long it cleans up after it
//
// Facts come from two sources: the event log, which is read ten times a second, and the schedd's queue, which is
// looked up at the start, after trouble, and every half minute, because a log may have lost something. Each fact
// changes nothing when it arrives a second time.
package schedd
