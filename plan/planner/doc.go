// Package planner decides which pilots to request for a workflow with estimated task runtimes: how many, with which
// shape, where and when. It does no I/O, reads no clock, and draws random numbers only from a seed: the same problem
// always yields the same plan, byte for byte.
//
// Make returns the plan for a plan.Problem and a plan.Goal: that of the algorithm staircase or, with Options.Slots, one
// whose pilots are in given slots. Package plan/planner/algorithm has all algorithms, and chooses among them. Expect
// forecasts when a workflow ends on the pilots that are already present. The package does not estimate runtimes and
// waits, which the problem contains, and does not request pilots. Units are those of package plan.
//
// How it works, by file:
//
//	planner.go    Make evaluates candidates in parallel (a number of hosts of one size, from sites in some order); the
//	              best one within the goal becomes the plan
//	schedule.go   the list schedule of a candidate: tasks by upward rank, each on the first host that has room. Hosts
//	              at the end of the list are therefore used only while the workflow is wide
//	staircase.go  turns the times in which hosts are used into pilots, each requested early enough to wait in its
//	              queue before it is needed. This is the staircase of Juve 2012 (see package plan/cost), Figure
//	              6.1: capacity follows width
//	candidate.go  evaluates a candidate: its cost, its peak, and the limits that it violates
//	choose.go     the choice by objective, the front, the nearest plan for an unreachable goal, the reasons
//	refine.go     adds candidates between the points of a front that has few
//	witness.go    executes the candidates that matter, and rejects those that leave a task undone
//	sure.go       the choice if the deadline must be met with a confidence: a judge simulates plans, and the best one
//	              with sufficient confidence is taken
//	bound.go      a lower bound on the cpus of any plan, by package plan/planner/bound
//	narrow.go     the search for the fewest cpus that meet a deadline, starting at that bound
//
// The list schedule only suggests pilots. With Options.Play, the candidates that matter are executed (witness.go): the
// schedule of a plan is then what corrald's matching makes of its pilots if waits and runtimes are as estimated.
//
// Every plan passes plan/validator before it is returned. The validator shares no code with this package.
package planner
