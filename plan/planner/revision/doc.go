// Package revision decides how to revise a plan during its run. A revision lists the pilots to request in addition to
// the present ones, and the pilots to release; the plan itself does not change. The package does no I/O and reads no
// clock: the same view yields the same decision, in corrald and in package sim. The term is from predictive-reactive
// scheduling, where it means adapting a schedule to unexpected events.
//
// How it works, by file:
//
//	view.go      the state at an instant: the goal, the tasks, the pilots of the plan, the sites
//	outlook.go   corrects estimates by the tasks that have ended, makes a problem of the remaining work and the
//	             present pilots, and predicts its end with planner.Expect
//	budget.go    the money spent and committed, and the pilots that must end before it exceeds the budget
//	thrift.go    the pilots to release so that the budget covers the remaining work
//	walltime.go  the pilots that would cut off their next tasks, and therefore take no more
//	limits.go    the limits of sites that prevent useful pilots
//	decide.go    Decide: if behind, it adds pilots with planner.Make; if ahead, it releases those that are not needed
//
// The invariants: spending never exceeds the budget, as long as decisions are at most View.Period apart and a released
// pilot ends within View.Grace. No decision follows another within Pause, unless the budget requires it. A decision
// that was carried out is followed by an empty one, unless something else happens or time passes.
package revision
