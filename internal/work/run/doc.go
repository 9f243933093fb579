// Package run drives workflows on personal clusters: the effects around package execution, which decides.
//
// A run is one workflow on one cluster. It has a directory D that holds all of it: workflow.json (the workflow
// as it was given), data (its files, shared by its tasks), tasks (a directory for each attempt that runs, or left more
// than its outputs), journal, and at the end report.json, workflow-executed.json and tasks.index. The row in the store
// says only what the run as a whole is doing; what became of each task is in the journal.
//
// How it is built, from the inside out:
//
//   - A plan is what never changes: the workflow, its directory, and what decisions need of it, an
//     execution.Spec. A state is the plan with its execution.Execution, which changes only by records, whether
//     these come from the cluster or from the journal.
//   - A journal is the file of records. A sink writes what a cluster tells into it before the cluster may act
//     on it, and hands it on to the driver.
//   - A progress is the run's row in the store, and how far the store knows the run to be.
//   - A driver is the one goroutine that owns a run's state, gives ready jobs to the run's Queue by upward
//     rank, and ends the run.
//   - A Manager prepares runs in its home, the parent of their directories, starts their drivers, and answers for them.
//
// The one invariant: a record is in the journal before anything depends on it. So after a kill at any instant
// the journal replayed gives the exact state: finished tasks never run again, tasks that may be running are
// expected back from their workers, and the rest is submitted again.
package run
