// Package slotted schedules a workflow on slots that sites offer: the site and the time of each task, the necessary
// reservations, and their cost. It does not decide which slots to use; planner/moga searches for that.
//
// It is HEFT (Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002) with slots instead of processors, as Singh evaluates
// resource plans (PhD thesis, University of Southern California, 2008, section 4.5): tasks are placed by descending
// upward rank, each at the site whose slots allow its earliest end. All processors of a task are at one site. Data is
// transferred between tasks of different sites; within a site this takes no time.
//
// The makespan counts from the instant of the offers. The cost is that of the used slots (slot.List): a chosen slot
// without tasks costs nothing, and is not part of the plan.
//
// The invariant: a task starts after its parents have ended and their data has arrived, on processors that were offered
// and that no other task uses. The same problem and choice yield the same plan.
//
// The schedule is not optimal. As with any list scheduling, removing a slot may shorten the schedule.
package slotted
