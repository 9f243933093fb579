// Package montecarlo simulates plans many times, with random waits, runtimes and host speeds, and summarizes the
// outcomes. This is a Monte Carlo simulation based on package sim, which runs the rules of production.
//
//	model.go       a Model: the distributions of outcomes; one outcome of a plan
//	summary.go     the summary of outcomes: quantiles, shares within the deadline and the budget
//	present.go     the present pilots in the simulator
//	background.go  other users' jobs, which replace random waits
//	play.go        for the planner: a plan as it is executed if nothing is random
//	judge.go       for the planner: the share of outcomes in which a plan meets its deadline, in bounded time
//	compare.go     a comparison with policies that only react to a queue (package planner/baseline), in the same
//	               outcomes
//
// Waits are drawn independently for each pilot from those observed at a site. In reality, waits at the same time are
// correlated: on a busy day all pilots wait. Therefore the outcomes of plans with many pilots vary more than the
// simulation shows. Among the jobs of a Background the waits are correlated: pilots wait behind the same jobs, and
// behind each other.
//
// Random values are derived by name from a seed (see sim): the nth outcomes of two plans have the same runtimes, and
// the nth pilot of a site has the same quantile of its waits, so that plans are compared in pairs.
package montecarlo
