// Package slot models a site's offers of processors: each offers a number of processors for an interval of time at a
// price. A workflow that reserves slots in advance does not wait in a queue between its tasks.
//
// The terms are those of Singh (An end-to-end framework for provisioning based resource and application management, PhD
// thesis, University of Southern California, 2008, chapters 3 and 4). A slot is divisible if a part of it may be taken,
// and extensible if it may be held beyond its end, because nothing is planned after it. A piece is the part of a slot
// that is taken. A site advertises slots in which nothing else is planned, so taking one delays no other user.
//
// A List holds the free and the taken parts of slots in order of time. List.Place finds the earliest start of a task
// and takes its processors, and List.Cost returns the cost of everything taken (figures 2 and 3, table 1 of the
// thesis). With a single slot of all processors it is the thesis's non-delaying scheduler; with the slots of a plan, it
// is the bin of one site. A Profile counts the free processors of a machine over time, from which slots are made. A
// Source provides the Offer of a site at an instant, which ReadCSV reads from a file; a Market prices any reservation.
//
// The processors of a list are pinned: a task keeps the same processors of the same slots until it ends. Slots that
// overlap in time can be combined side by side, but not one after another. A Profile, which counts free processors, is
// not restricted in this way, and may yield an earlier start.
//
// The invariant: free and taken parts never overlap, and together they are the original slots. The package reads no
// clock; all times count from an instant that the caller chooses, and are whole milliseconds. It reserves nothing at a
// site: package plan/sim/market simulates sites that do.
package slot
