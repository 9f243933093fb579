// Package dpds decides online on the number of machines of a workflow ensemble and on the workflows to begin: the
// dynamic algorithms of Juve 2012, section 6.3 (also Malawski, Juve, Deelman and Nabrzyski: Cost- and
// deadline-constrained provisioning for scientific workflow ensembles in IaaS clouds, SC 2012).
//
//	SPDS     a constant number of machines that spend the budget by the deadline
//	DPDS     the same number at first; more while nearly all are busy, fewer while many are idle
//	WA-DPDS  DPDS that begins a workflow only if the remaining money pays for it
//
// In all three algorithms a free machine gets a ready task of the workflow with the highest priority; other workflows
// fill the gaps. The owner of the queue implements this matching; this package makes the two decisions as pure
// functions. Step decides about machines at each interval; Admit decides about a workflow when its first task is next.
// The simulator and real runs call the same functions.
//
// Fixes lists the differences from the published rules; each fix has a switch.
package dpds
