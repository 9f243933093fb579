// Package execution is the decision core of a run. It decides when the tasks of a workflow are released, and which of
// them together, and how each event in their lives affects them. It does not do I/O or read the clock: the current time
// is an argument. So corrald uses it to drive real runs, and thousands of runs can be simulated in virtual time.
//
// # The model
//
// A Spec contains the parts of the workflow on which decisions depend; it never changes. An Execution is the state of
// its tasks, and one goroutine owns it. Apply applies a Record of one event. Release makes jobs of the tasks that are
// due. A Job is given to a worker as a whole: one task, or several that run one after another.
//
// A task and a subworkflow are both units. Each has a State (state.go), which changes only by the moves in the table
// there:
//
//	waiting → preparing → ready → running → judging → done, failed or skipped
//
// The unit of a task (unit.go) also holds its job and its last attempt. Properties that few tasks have are in a sparse
// extra. The table of units counts them by state, so that Task, Counts and Progress only read.
//
// A scope (scopes.go) is the workflow or a subworkflow; scopes form a tree. A scope counts its members that are not
// over, runs its final tasks last, and determines whether it succeeded. The graph (graph.go) propagates the end of a
// unit to the units that wait for it. In an open execution, which grows by Additions, gates do this (gate.go).
//
// An attempt is one execution of a task. It is done, failed (which uses one of the task's retries), cut because its
// worker's time was over, or lost with its worker. A task that was cut or lost is requeued with the next attempt
// number, which does not use a retry.
//
// An Offer lists the resources that a cluster has for the tasks. A Shortage describes those it lacks, and a Watch
// decides when the shortage has lasted long enough that the run has stalled.
//
// # The invariant
//
// An Execution is a function of its Spec and of the Records applied, in order. Jobs that were released but not assigned
// to a worker are not part of the state; they are released again. So replaying the Records after a crash restores the
// exact state: tasks that are done never run again, and tasks that may be running are expected back from their workers.
package execution
