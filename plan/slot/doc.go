// Package slot models a site's offers of processors: a number of them, from an instant on, for a time, at a price. A
// workflow that takes slots beforehand waits in no queue between its tasks.
//
// The words are those of Singh (An end-to-end framework for provisioning based resource and application management, PhD
// thesis, University of Southern California, 2008, chapters 3 and 4). A slot is divisible if a part of it may be taken,
// and extensible if it may be held beyond its end: nothing is planned behind it. A piece is the part of a slot that is
// taken. A site advertises slots in which nothing else is planned, so taking one delays no other user.
//
//	slot.go   a slot, what may be taken of it, and what that costs (equations 1 and 2, table 1)
//	list.go   free slots in the order of time: the earliest start of a task, and what is left of the slots that it
//	          takes (figures 2 and 3). With one slot of all processors it is the thesis's non-delaying scheduler; with
//	          the slots of a plan, the bin of one site
//	offer.go  what a source says at an instant, and the error for what is no longer so
//	csv.go    slots in a file
//
// Processors in a list are pinned: a task keeps the same ones of the same slots to its end, and slots that overlap in
// time are put on top of each other, never behind each other. A profile that counts free processors (plan/availability)
// has no such rule, and may have an earlier start.
//
// The one invariant: what is free and what is taken never overlap, and together they are the slots that a list began
// with. There is no clock here: all times count from the same instant, which is the caller's.
//
// A real Slurm is another Source: a room below gridsite/slurm that makes a profile of squeue's and sinfo's answers, as
// sim/advertiser makes one of a simulated queue, and asks sbatch --test-only before it takes anything.
package slot
