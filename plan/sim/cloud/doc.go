// Package cloud simulates ensembles of workflows on machines in virtual time, like the simulator of Juve 2012 (section
// 6.4; corral-thesis, §1.6.11): machines are requested, become ready after a delay, are billed by the period, and run
// the tasks of a queue. It makes no decisions: an ensemble.Policy, the same as in a real run, decides on the number of
// machines and on the workflows to begin.
//
//	Online   machines and workflows according to a policy, tasks in the order of one queue
//	Bound    a static plan without changes: each machine has its tasks in order, and the budget is not enforced
//
// A machine has slots, each of which runs one task at a time regardless of its needs (trap T36); data, and thus the
// location of a task, is ignored. Package sim, which simulates a single workflow on pilots by all the rules of
// production, does model these aspects. In exchange, this package needs less than a millisecond for a thousand tasks.
//
// Events of the same instant are handled together, ends of tasks first. The simulation is deterministic.
package cloud
