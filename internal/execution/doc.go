// Package execution is the decision core of a run: which tasks of a workflow are released when and together, and what each
// event of their lives means for them. It does no I/O and reads no clock: now is an argument.
//
// A Job is what a worker is given: one Task, or several that run one after another (a clustered job). A Result is how one
// attempt at a task ended. They are what a run, its cluster and its workers tell each other, in memory and, as JSON, over the
// wire.
package execution
