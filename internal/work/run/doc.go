// Package run drives workflows on personal clusters: it performs the I/O for the decisions of package execution.
//
// A run is one workflow on one cluster. Its directory D contains all its files: workflow.json (the original workflow),
// data (its files, shared by its tasks), tasks (a directory for each attempt that runs, or left more than its outputs),
// journal, and at the end report.json, workflow-executed.json and tasks.index. The row in the store contains only the
// state of the run as a whole; the history of each task is in the journal.
//
// The parts, from the inside out:
//
//   - A plan is the immutable part: the workflow, its directory, and the execution.Spec on which decisions depend. A
//     state is the plan with its execution.Execution, which changes only by records, either from the cluster or from
//     the journal.
//   - A journal is the file of records. A sink writes a cluster's reports to it before the cluster may act on them, and
//     then passes them to the driver.
//   - A progress is the run's row in the store, and tracks which progress has been stored.
//   - A driver is the one goroutine that owns a run's state, submits ready jobs to the Dispatcher by upward rank, and
//     ends the run.
//   - A Manager prepares runs in its home, the parent of their directories, starts their drivers, and answers requests
//     about runs.
//
// The one invariant: a record is in the journal before anything depends on it. So after a kill at any time, replaying
// the journal restores the exact state: finished tasks never run again, tasks that may be running are expected back
// from their workers, and the rest is submitted again.
package run
