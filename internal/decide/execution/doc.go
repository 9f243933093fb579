// Package execution is the decision core of a run: which tasks of a workflow are released when, and together with which
// others, and what each event of their lives means for them. It does no I/O and reads no clock: now is an argument. So
// corrald drives real runs with it, and thousands of them can be simulated in virtual time.
//
// A Job is the unit of work for a worker: one Task, or several that run one after another (a clustered job). Which
// tasks share one the Spec says; a task may wait for others of its job, which then come before it. A job is as large as
// some worker could take. An attempt is one execution of a task, and a Result is how it ended: done, failed (which
// costs one of the task's retries), or cut, because its worker's time was over. An attempt whose worker vanished is
// lost. A task that was cut or lost is queued again under the next attempt number, and that costs no retry.
//
// How it is built:
//
//   - A Spec is the workflow as far as decisions depend on it; it never changes.
//   - An Execution is what became of the tasks. Release makes jobs of those whose time has come, and Apply
//     takes one Record of what happened to them. Inside are the frontier (which tasks may be released), the
//     attempts (which number comes next, how the last one ended), the book (the jobs released and not over) and
//     the roster (the workers met).
//   - An Offer lists the resources that a cluster has for the tasks. A Shortage lists those it lacks, and a Watch
//     decides when the shortage has lasted so long that the run has stalled.
//
// The one invariant: an Execution is a function of its Spec and of the Records applied, in their order. Jobs that were
// released and not assigned to a worker are not part of the state; they are released again. So replaying the Records
// after a crash gives the exact state: what is done never runs again, and what may be running is expected back from its
// worker.
package execution
