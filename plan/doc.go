// Package plan has the nouns of provisioning: what a plan is made for (the work, the sites, the cluster that runs it),
// and the plan itself: which pilots to ask for, where, of what shape and when, with a schedule that shows that they
// suffice. It decides nothing: package planner makes plans, package plan/validator checks them, package sim plays them.
//
// Times count from the beginning of the plan, waits in queues included, and are whole milliseconds. A pilot goes
// through four instants:
//
//	Submit   it is asked for
//	Start    its job is expected to start: Submit plus the wait that the plan assumes
//	Ready    its workers are expected in the cluster: Start plus the site's overhead
//	End      it is released, or its walltime ends: what is held, and paid for, is Start to End
//
// The one invariant: a plan stands for itself. It can be checked with the problem alone, without knowing how it was
// made, which is why it carries a witness: a schedule with a place and a time for each task.
package plan
