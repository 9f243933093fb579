// Package planner decides which pilots to ask for: how many, of what shape, where and when, for a workflow whose tasks'
// runtimes are estimated. It does no I/O, reads no clock, and draws no number but from a seed: the same problem has the
// same plan, byte by byte.
//
// How it works, in the order of the files:
//
//	planner.go    Make: candidates (so many hosts of one size, from sites in some order) are evaluated side by side,
//	              and the best within the goal becomes the plan
//	schedule.go   the list schedule of a candidate: tasks by upward rank, each on the first host that has room. Hosts
//	              at the end of the list are thereby used only while the workflow is wide
//	staircase.go  the times in which hosts are used become pilots, each asked for so early that it waits in its queue
//	              before it is needed. That is the staircase of Juve 2012, Figure 6.1: capacity follows width
//	candidate.go  what a candidate comes to: cost, peak, limits that it breaks
//	choose.go     the choice by objective, the front, the nearest plan where the goal is out of reach, the reasons
//	sure.go       the choice where the deadline is to be met with a confidence: a judge plays plans, and the best that
//	              is sure enough is taken
//	bound.go      a number of cpus that no plan can do without (energy.go, packing.go), and
//	narrow.go     the search for the fewest cpus that meet a deadline, beginning at the bound
//
// The schedule in a plan is a witness that its pilots suffice. It is not a forecast: tasks are matched to workers when
// they are ready, by the same priorities, and take as long as they take.
//
// Every plan passes plan/validator before it is returned, which shares no code with this package.
package planner
