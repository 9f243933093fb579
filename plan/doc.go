// Package plan defines the types of provisioning: the input of a plan (the work, the sites and the cluster that runs
// the tasks) and the plan itself, which lists the pilots to request, with their sites, shapes and times, and a schedule
// which shows that they suffice. The package makes no decisions: package planner makes plans, package plan/validator
// checks them, and package sim simulates them.
//
// Times count from the beginning of the plan, include queue waits, and are whole milliseconds. A pilot has four
// instants:
//
//	Submit   its job is submitted
//	Start    its job is expected to start: Submit plus the wait that the plan assumes
//	Ready    its workers are expected in the cluster: Start plus the site's overhead
//	End      it is released, or its walltime ends; it is held, and paid for, from Start to End
//
// The package has one invariant: a plan is self-contained. It can be checked against the problem alone, regardless of
// the algorithm that made it. For this purpose it contains a witness: a schedule with a place and a time for each task.
package plan
