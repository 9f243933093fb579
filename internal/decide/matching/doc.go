// Package matching decides which queued job each worker of a personal cluster receives. The package does no I/O, reads
// no clock and starts nothing: the embedded dispatcher calls it under its lock with the real time, a simulator may call
// it with virtual time, and both obtain the same decisions. The package is not safe for concurrent use.
//
// A Job specifies the needs to be matched: cpus, memory, gpus, disk, an estimate of its time, and a priority. A Slot
// represents a worker: its resources, the speed of its host, by which the estimates of jobs are divided there, the jobs
// that are believed to run on it, and the jobs that wait there. A Run is a group of jobs with a common pace, which
// indicates how reliable their estimates are. A Matcher holds the queue and the open slots, and assigns jobs to slots.
//
// # The rule
//
// The rule is first fit in the queue's order: highest class and priority first, then first come, first served. A slot
// takes the first queued job that fits into its free resources and whose estimated time at the slot's speed, plus
// StartMargin for starting a process, ends before the worker stops. The slots that end first are filled first: a short
// job should not take a slot that a long job needs. Among slots that end together, the one with the least free
// resources is filled first, so that big jobs find the others; then the fastest one; then the one with the lowest ID.
// This rule alone would put big jobs and short jobs at a disadvantage, so three mechanisms are added:
//
//   - Overtaking. If a job does not fit, smaller jobs behind it may overtake it, so that a big job leaves no worker
//     idle. When a job has been overtaken for overtakenLong, one slot that could hold it is kept free for it: the slot
//     takes no other job until enough of its running jobs have ended. A job that fits no slot at all does not block
//     other jobs.
//   - Prefetching. A round trip to the worker for each job of a few milliseconds would leave the worker's cpus idle. So
//     jobs may wait at a worker: for each cpu at most prefetchWork, according to their estimates corrected by their
//     run's pace, and at most prefetchMost jobs. The number of waiting jobs per cpu of a slot never exceeds the number
//     of queued jobs per cpu of all slots, so that jobs do not wait at one worker while another is idle. If the first
//     job that could run there is too long to wait, no job is prefetched, because a short job that waits would overtake
//     it.
//   - Recall. A job that has waited at a worker for RecallAfter is behind a job that takes longer than expected.
//     Overdue returns the waiting job and the jobs behind it; once the worker has returned them, they are restored to
//     their old positions.
//
// A worker starts its waiting jobs strictly in order, each job as soon as it fits, and its Slot does the same whenever
// a job is released, so the two agree without a message.
//
// # From a job to the caller's own
//
// The caller stores more data about a job than the matching needs, such as what was sent to which worker. It embeds a
// Job in a type of its own, and Job.Value refers back to the embedding value, usually as a pointer: this costs one word
// per job, no map look-up and no type assertion. Jobs are passed in as *Job and returned as Values. A simulator's Value
// may be an index.
//
// # Complexity
//
// Jobs of nearly the same shape share a bucket, which is a heap. With n jobs in s shapes, pushing, taking, restoring
// and removing a job costs O(log n), and a slot finds its next job by looking at the first jobs of at most s buckets,
// however many jobs are behind them; it stops at the first bucket that cannot improve on the best job found so far. The
// search continues inside a bucket only if the slot's free resources end within the step of memory, disk or time that
// the bucket covers: then it skips jobs until one fits, and it does not search a bucket twice if no job in it fits. The
// number of shapes is bounded, however large n is: there are a few in practice, and some two thousand if no two jobs
// are alike.
//
// Matching all slots visits only those that may take jobs: slots that have changed, slots where jobs wait or may wait,
// and, if jobs were queued since the last time, slots with room for the least of their needs. A search tree by place,
// with the maxima of each subtree, finds the next such slot in O(log n) steps, so that a full cluster costs nothing,
// however many slots it has.
//
// # Limits of this package
//
// The package does not implement HTCondor's matchmaking: jobs and slots carry no expressions, slots do not rank jobs,
// no job is preempted, and there is no fair share between runs or users. It does not implement the protocol either: the
// dispatcher tracks what was recorded, sent, cancelled or lost. Nor does it decide how many workers there should be.
package matching
