// Package montecarlo plays plans many times over, with waits, runtimes and hosts' speeds drawn by chance, and counts
// what comes of it: a Monte Carlo simulation, by package sim, which runs the rules of production.
//
//	model.go       a Model: what outcomes are drawn from; one outcome of one plan
//	summary.go     what many outcomes come to: quantiles, shares within the deadline and the budget
//	present.go     the pilots that are there already, as the simulator plays them
//	background.go  other people's jobs, among which pilots wait, where waits are not drawn
//	judge.go       for the planner: in which share of outcomes a plan meets its deadline, in bounded time
//	compare.go     the plan beside policies that only react to a queue (package planner/baseline), in the same
//	               outcomes
//
// Waits are drawn from those that were seen at a site, each pilot's on its own. In reality those of pilots that wait at
// the same time are alike: a busy day makes all of them wait. Where pilots are many, outcomes spread more than this
// says. Among a Background's jobs they are alike: each waits in the queue behind the same jobs, and behind the others.
//
// Chance is drawn by name from a seed (see sim): the nth outcome of two plans meets the same runtimes, and the nth
// pilot of a site the same share of its waits, so that plans are compared in pairs.
package montecarlo
