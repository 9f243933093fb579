// Package slotted schedules a workflow on slots that sites offer: which task runs where and when, what has to be
// reserved for it, and what that costs. It decides nothing about which slots to take; planner/moga searches for that.
//
// It is HEFT (Topcuoglu, Hariri and Wu, IEEE TPDS 13(3), 2002) with slots in the place of processors, as Singh
// evaluates resource plans (PhD thesis, University of Southern California, 2008, section 4.5): tasks in the order of
// their upward ranks, each at the site whose slots have the earliest start for it. A task's processors are all of one
// site. Between tasks of different sites data travels; within one it takes no time.
//
// The makespan counts from the instant of the offers. The cost is that of the slots that are used (slot.List): one that
// was chosen and has no task costs nothing, and is not part of the plan.
//
// The one invariant: a task starts when its parents have ended and their data has come, on processors that were
// offered and that no other task has. The same problem and choice give the same plan.
//
// The schedule is not an optimum. Taking a slot away may make it shorter, as with any list schedule.
package slotted
