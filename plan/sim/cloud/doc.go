// Package cloud plays ensembles of workflows on machines in virtual time, as the simulator of Juve 2012 (section 6.4;
// corral-thesis, §1.6.11) does: machines are asked for, are ready after a delay, are billed by the period, and run the
// tasks of a queue. It decides nothing: how many machines there are and which workflows are begun is asked of an
// ensemble.Policy, the same that a real run asks.
//
//	Online   machines and workflows as a policy says, tasks by their places in one queue
//	Bound    a static plan to the letter: each machine has its tasks in their order, and nothing watches over money
//
// A machine has slots, each of which takes a task at a time whatever it needs (trap T36); data, and with it where a
// task runs, is of no account. Package sim, which plays a single workflow on pilots by all rules of production, has
// what is missing here. In exchange it takes less than a millisecond for a thousand tasks.
//
// Events of the same instant are taken together, ends of tasks first. The same scenario has the same outcome.
package cloud
