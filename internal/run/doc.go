// Package run drives workflows on personal clusters.
//
// A run is one workflow on one cluster. It has a directory D that holds all of it: workflow.json (the
// workflow as it was given), data (its files, shared by its tasks), tasks (a directory for each
// attempt), journal, and at the end report.json and workflow-executed.json. The row in the store says
// only what the run as a whole is doing; what became of each task is in the journal.
//
// A job is what a cluster is given: one task, or a clustered job of several. An attempt is one
// execution of a task. It ends finished (the task is done), failed (it costs one of the task's
// retries), or lost: cut off by the end of its worker's time, or gone with its worker. A lost attempt
// costs no retry; the task is queued again under the next attempt number.
//
// How it is built, from the inside out:
//
//   - A plan is what never changes: the workflow, its graph, ranks, clusters and requirements.
//   - A state is what became of the tasks. It changes only through its apply method, which takes one
//     record, and it is the same whether the records come from the cluster or from the journal.
//   - A journal is the file of records. A sink writes what a cluster tells into it before the cluster
//     may act on it, and hands it on to the driver.
//   - A driver is the one goroutine that owns a run's state, gives ready jobs to the run's Queue by
//     upward rank, and ends the run.
//   - A Manager prepares runs, starts their drivers, and answers for them.
//
// The one invariant: a record is in the journal before anything depends on it. So after a kill at any
// instant the journal replayed gives the exact state: finished tasks never run again, tasks that may
// be running are expected back from their workers, and the rest is submitted anew.
package run
