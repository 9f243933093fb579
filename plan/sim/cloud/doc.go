// Package cloud simulates ensembles of workflows on machines in virtual time, like the simulator of Juve 2012 (section
// 6.4): machines are requested, become ready after a delay, are billed by the period, and run the tasks of a queue. It
// makes no decisions: an ensemble.Strategy, the same as in a real run, decides on the number of machines and on the
// workflows to begin.
//
//	Online   machines and workflows according to a policy, tasks in the order of one queue
//	Bound    a static plan without changes: each machine has its tasks in order, and the budget is not enforced
//
// Both take a Scenario and return an Outcome. Instants are durations since the beginning. Runtimes are the estimates
// unless Scenario.Err makes them random, and Scenario.Failing makes attempts fail.
//
// A machine has slots, each of which runs one task at a time regardless of its needs; data, and thus the location of a
// task, is ignored. Package plan/sim, which simulates a single workflow on pilots by all the rules of production, does
// model these aspects. In exchange, this package needs less than a millisecond for a thousand tasks.
//
// Events of the same instant are handled together, ends of tasks first. The simulation is deterministic.
//
// Juve 2012 is Gideon Juve: Resource Management for Scientific Workflows, PhD thesis, University of Southern
// California, 2012.
package cloud
