// Package dpds decides online how many machines an ensemble of workflows has, and which workflows are begun: the
// dynamic algorithms of Juve 2012, section 6.3 (also Malawski, Juve, Deelman and Nabrzyski: Cost- and
// deadline-constrained provisioning for scientific workflow ensembles in IaaS clouds, SC 2012).
//
//	SPDS     as many machines as spend the budget until the deadline, from the beginning to the end
//	DPDS     as many at first; then more while nearly all are busy, and fewer while many are idle
//	WA-DPDS  DPDS that begins a workflow only if the money that is left pays for it
//
// In all of them a free machine takes a ready task of the workflow of the highest priority; those of others fill what
// is left. The keeper of the queue does that: here are the two decisions, as pure functions. Step is asked about
// machines at each interval, Admit when the first task of a workflow is next. The simulator and a real run call them
// alike.
//
// The published rules and ours differ in what Fixes names; each fix has its switch.
package dpds
