// Package plan defines the types of provisioning: the input of a plan (the work, the sites and the cluster that runs
// the tasks) and the plan itself, which lists the pilots to request, with their sites, shapes and times, and a schedule
// which shows that they suffice. The package makes no decisions: package plan/planner makes plans, package
// plan/validator checks them, and package plan/sim simulates them.
//
// A Problem and a Goal are the input, and a Plan is the result; its JSON form is the output of corral plan -o json and
// the document that corrald stores, from which Decode returns it. Assumed is the part of the problem that a plan
// contains, so that Assumed.Problem returns it without the corrald that made the plan.
//
// Times count from the beginning of the plan, include queue waits, and are whole milliseconds. A pilot has four
// instants:
//
//	Submit   its job is submitted
//	Start    its job is expected to start: Submit plus the wait that the plan assumes
//	Ready    its workers are expected in the cluster: Start plus the site's overhead
//	End      it is released, or its walltime ends; it is held, and paid for, from Start to End
//
// Memory and disk are in MiB, the sizes of files in bytes, and costs in the unit of the sites' prices.
//
// The package has one invariant: a plan is self-contained. It can be checked against the problem alone, regardless of
// the algorithm that made it. For this purpose it contains a witness: a schedule with a place and a time for each task.
package plan
