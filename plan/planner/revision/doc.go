// Package revision decides how a plan is revised while its run goes on. A revision says which pilots to ask for beyond
// those that there are, and which to let go; the plan itself stays what it was. It does no I/O and reads no clock: the
// same view has the same decision, whether corrald asks or package sim. The word is that of predictive-reactive
// scheduling, for what becomes of a schedule when things go otherwise.
//
// How it works, in the order of the files:
//
//	view.go      what is known at an instant: the goal, the tasks, the pilots of the plan, the sites
//	outlook.go   estimates are corrected by what has ended, what is left becomes a problem of its own with the pilots
//	             as they are, and planner.Expect says when it will be done
//	budget.go    what was spent, what is bound to be, and which pilots must end before it is more than the budget
//	thrift.go    which pilots to let go so that the budget suffices for what is left
//	walltime.go  which pilots would cut what they take next, and take no more therefore
//	limits.go    which limits of sites keep pilots from being asked for that would help
//	decide.go    Decide: behind, pilots are added as planner.Make says; ahead, those that are not needed are let go
//
// The invariants: what is spent never exceeds the budget, as long as decisions are no further apart than View.Period
// and a pilot is gone View.Grace after it was told to go. Without the one that forces it no decision follows another
// within Pause. And a decision that was carried out is followed by none, unless something else happens or time passes.
package revision
