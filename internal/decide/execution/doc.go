// Package execution is the decision core of a run: which tasks of a workflow are released when, and together with which
// others, and what each event of their lives means for them. It does no I/O and reads no clock: the current time is an
// argument. So corrald drives real runs with it, and thousands of them can be simulated in virtual time.
//
// # The model
//
// A Spec is the workflow as far as decisions depend on it; it never changes. An Execution is the state of its tasks,
// and one goroutine owns it. Apply changes it by one Record of what happened. Release makes jobs of the tasks whose
// time has come. A Job is given to a worker as a whole: one task, or several that run one after another.
//
// A task and a subworkflow are both units. Each has a State (state.go), which changes only by the moves in the table
// there:
//
//	waiting → preparing → ready → running → judging → done, failed or skipped
//
// The unit of a task (unit.go) also has its job and its last attempt. Properties of few tasks are in a sparse extra.
// The units count themselves by state, so that Task, Counts and Progress only read.
//
// A scope (scopes.go) is the workflow or a subworkflow in it: they form a tree. It counts its members that are not
// over, runs its final tasks last, and decides whether it succeeded. The graph (graph.go) carries the end of a unit to
// those that wait for it. In an open execution, which grows by Additions, gates do (gate.go).
//
// An attempt is one execution of a task. It is done, failed (which costs one of the task's retries), cut, because the
// time of its worker was over, or lost with its worker. A task that was cut or lost is queued again under the next
// attempt number, which costs no retry.
//
// An Offer lists the resources that a cluster has for the tasks. A Shortage lists those it lacks, and a Watch decides
// when the shortage has lasted so long that the run has stalled.
//
// # The invariant
//
// An Execution is a function of its Spec and of the Records applied, in their order. Jobs that were released and not
// assigned to a worker are not part of the state; they are released again. So replaying the Records after a crash gives
// the exact state: what is done never runs again, and what may be running is expected back from its worker.
package execution
