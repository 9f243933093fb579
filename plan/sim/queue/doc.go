// Package queue is the queue of a batch system in virtual time: jobs come, wait, run and end on a machine with a fixed
// number of processors, and a policy decides which starts when. So a wait follows from the load and the submissions.
//
// The words are those of the field (Feitelson, Rudolph and Schwiegelshohn, Parallel job scheduling: a status report,
// JSSPP 2004). A job is rigid: it asks for a number of processors and a requested time, after which it is killed. Jobs
// are served in the order of arrival; a job that starts before one that arrived earlier is backfilled. A scheduling
// pass is one look of the policy at the queue. The policies:
//
//	fcfs          nothing is backfilled: the first job that does not fit stops all behind it
//	easy          a job is backfilled if it does not delay the first one that waits (aggressive backfilling: Lifka,
//	              The ANL/IBM SP scheduling system, JSSPP 1995)
//	conservative  a job is backfilled if it delays none that arrived earlier: each has a reservation from its arrival
//	              on (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, §2.1)
//
// A job over its user's limit of running jobs is passed over until it is under it, as Maui and PBS do: it stops nobody,
// and has no reservation.
//
// The background is jobs that are known beforehand, of a trace or of a model. Other jobs are submitted while time goes
// on, and may be open: they end when their owner says so, or at their requested time. The policy sees requested times
// alone, never runtimes.
//
// It is space sharing of processors that are alike and are counted, not named: there are no nodes, no priorities, no
// memory, no preemption. Everything at one instant happens in the order: ends, then arrivals, then one pass.
//
// The one invariant: the same jobs in the same order give the same schedule, and no more processors are held than there
// are. There is no clock here, and no chance.
package queue
