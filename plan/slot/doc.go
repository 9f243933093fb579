// Package slot models a site's offers of processors: each offers a number of processors for an interval of time at a
// price. A workflow that reserves slots in advance does not wait in a queue between its tasks.
//
// The terms are those of Singh (An end-to-end framework for provisioning based resource and application management, PhD
// thesis, University of Southern California, 2008, chapters 3 and 4). A slot is divisible if a part of it may be taken,
// and extensible if it may be held beyond its end, because nothing is planned after it. A piece is the part of a slot
// that is taken. A site advertises slots in which nothing else is planned, so taking one delays no other user.
//
//	slot.go   a slot, which pieces may be taken from it, and their cost (equations 1 and 2, table 1)
//	list.go   free slots in order of time: the earliest start of a task, and the remaining parts of the slots that it
//	          takes (figures 2 and 3). With a single slot of all processors it is the thesis's non-delaying scheduler;
//	          with the slots of a plan, it is the bin of one site
//	offer.go  a source's offer at an instant, and the error for stale offers
//	profile.go
//	          the number of free processors of a machine over time, from which slots are made
//	csv.go    slots in a file
//
// The processors of a list are pinned: a task keeps the same processors of the same slots until it ends. Slots that
// overlap in time can be combined side by side, but not one after another. A Profile, which counts free processors,
// is not restricted in this way, and may yield an earlier start.
//
// The invariant: free and taken parts never overlap, and together they are the original slots. The package reads no
// clock; all times count from an instant that the caller chooses.
//
// A real Slurm would be another Source: a package below gridsite/slurm that makes a profile from the output of squeue
// and sinfo, just as a market.Advertiser makes a profile from a simulated queue, and that calls sbatch --test-only
// before it reserves anything.
package slot
