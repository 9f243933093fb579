// Package matching decides which queued job each worker of a personal cluster gets. It does no I/O, reads no
// clock and starts nothing: the embedded dispatcher calls it under its lock with the real time, a
// simulator may call it with virtual time, and both get the same decisions. Nothing here is safe for concurrent
// use.
//
// A Job states the needs to be matched: cpus, memory, gpus, disk, an estimate of its time, a priority. A Slot is a
// worker as the matching sees it: what it has, what is believed to run on it, and what waits there. A Run is the jobs
// that share a pace, which says how far their estimates can be believed. A Matcher holds the queue and the slots that
// are open, and joins the two.
//
// # The rule
//
// The rule is first fit in the queue's order: highest class and priority first, then first come, first served. A slot
// takes the first queued job that fits into what is free of its resources and whose estimate, plus StartMargin for
// starting a process, ends before the worker stops. Big jobs and short ones would lose by that alone, so three
// things are added:
//
//   - Overtaking. A job that does not fit where jobs behind it do is overtaken, so that a big job leaves no
//     worker idle. When a job has been overtaken for overtakenLong, one slot that could hold it is kept free
//     for it: the slot takes nothing else until enough of what runs there has ended. A job that fits no slot at
//     all blocks nothing.
//   - Prefetching. A round trip to the worker for each job of a few milliseconds would leave its cpus idle. So
//     jobs may wait at a worker: prefetchWork for each cpu, by their estimates corrected by their run's pace,
//     and prefetchMost jobs. At most as many wait for each cpu of a slot as jobs are queued for each cpu of all
//     slots, so that jobs do not wait at one worker while another idles. If the first job that could run there
//     is too long to wait, nothing is prefetched, because a short job that waits would overtake it.
//   - Recall. A job that has waited at a worker for RecallAfter is behind one that takes longer than expected.
//     Overdue returns it and those behind it; once the worker has handed them back they are restored to their
//     old places.
//
// A worker starts what waits strictly in order, each job as soon as it fits, and so does its Slot whenever a
// job is released: the two agree without a message.
//
// # From a job to the caller's own
//
// The caller knows more about a job than the matching needs, such as what was sent to which worker. It embeds a
// Job in a type of its own, and Job.Value leads back, usually as a pointer to the whole: one word per job, no
// look-up in a map and no type assertion. Jobs go in as *Job and come out as Values. A simulator's Value may be
// an index.
//
// # Complexity
//
// Jobs of nearly one shape share a bucket, which is a heap. With n jobs in s shapes, pushing, taking, restoring
// and removing a job costs O(log n), and a slot finds its next job by looking at the first jobs of at most s
// buckets, however many jobs are behind them; it stops at the first bucket that cannot improve on what was
// found. It looks deeper into a bucket only if the slot's room ends within the step of memory, disk or time that the
// bucket covers: then it passes over the jobs that do not fit before one that does, and does not search a
// bucket twice in which none does. The number of shapes is bounded whatever n is: a few in practice, some two
// thousand if no two jobs are alike.
//
// # What it is not
//
// It is not HTCondor's matchmaking: jobs and slots carry no expressions, slots do not rank jobs, nothing is
// preempted, and there is no fair share between runs or users. It does not know the protocol either: what was
// recorded, sent, cancelled or lost is the dispatcher's business. And it does not decide how many workers there
// should be.
package matching
