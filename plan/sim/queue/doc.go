// Package queue simulates the queue of a batch system in virtual time: jobs arrive, wait, run and end on a machine with
// a fixed number of processors, and a policy decides when each job starts. So waits follow from the load and the
// submissions.
//
// A Machine describes the processors and the policy, and a Queue is the state of a machine and its jobs. New makes a
// Queue; Submit, Finish and Advance change it. Replay runs a whole workload, Planned forecasts the starts of waiting
// jobs, and Of makes a replica of a real queue. Instants are durations since the beginning of the simulation.
//
// The terms are those of the research literature (Feitelson, Rudolph and Schwiegelshohn, Parallel job scheduling: a
// status report, JSSPP 2004). A job is rigid: it requests a number of processors and a time, after which it is killed.
// Jobs are served in order of arrival; a job that starts before an earlier one is backfilled. A scheduling pass is one
// evaluation of the queue by the policy. The policies:
//
//	fcfs          no backfilling: the first job that does not fit blocks all behind it
//	easy          a job is backfilled if it does not delay the first waiting job (aggressive backfilling: Lifka, The
//	              ANL/IBM SP scheduling system, JSSPP 1995)
//	conservative  a job is backfilled if it delays no earlier job: each has a reservation from its arrival on (Mu'alem
//	              and Feitelson, IEEE TPDS 12(6), 2001, §2.1)
//
// A job whose user has reached the limit of running jobs is skipped until the user is below the limit, as in Maui and
// PBS: the skipped job blocks no other job, and has no reservation.
//
// The background is a list of jobs known in advance, from a trace or a model. Other jobs are submitted as time passes,
// and may be open: they end when their owner finishes them, or at their requested time. The policy sees only requested
// times, never runtimes.
//
// The queue models space sharing of identical processors, which are counted, not identified: it does not model nodes,
// priorities, memory, or preemption. At each instant, ends are handled first, then arrivals, then one pass.
//
// The invariant: the same jobs in the same order yield the same schedule, and the number of held processors never
// exceeds that of the machine. The package uses no clock and no random numbers.
package queue
