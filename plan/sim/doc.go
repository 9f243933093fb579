// Package sim plays workflows on pilots in virtual time. It decides nothing: what decides in production decides here.
//
//	which tasks are released, retried, given up     internal/decide/execution
//	which worker gets which job, and starts it when internal/decide/matching
//	which attempts of glideins are asked for        internal/decide/reconcile: Decide, World.Apply
//	when a pilot leaves, and why                    internal/decide/attempt
//
// How long a pilot waits in the queue of a batch system may be drawn, or is decided by package plan/sim/queue.
//
// The package itself replaces production's surroundings of these rules: time (clock), the driver of a run (run), the
// books of the dispatcher (cluster), workers (member), batch systems (site) and supervisors of pilots (pilot). It is a
// discrete-event simulation: a heap of events, each of which may plan others. A Scenario says what there is and what
// chance does; Run plays it and returns a Trace, in the form of a real run's journal, with what the pilots held.
//
// # The model
//
// A pilot is submitted when Decide says so, and waits for as long as its site draws; then it starts if the site has
// cpus left and no maintenance is in its walltime. Its workers register after the site's overhead. It stays until its
// walltime ends, less what production keeps of it; until it has been idle for as long as it may be; until it is asked
// to go; or until it fails. A task takes what Runtime says, times the speed of its host, and fails where Failures say
// so. Each start costs the cluster's hop: the time that a job takes to reach a free worker. If the cluster can use a
// worker again sooner, the last part of it is that time, and the first is the job's way into the queue. Starts are no
// more frequent than the cluster's rate.
//
// Everything happens at whole milliseconds. Events of the same instant happen in the order in which they were planned;
// in reality that is chance.
//
// Production looks at its clocks many times a second, in vain nearly always. Here what a look would see is known
// beforehand (matching.Slot.Restless, reconcile.Due, run.worthALook), and others are left out. That is what makes a run
// of 5,000 tasks take some 30 ms.
//
// # What it is not
//
// The journal takes no time, nor does the way to a site, nor does corrald poll: it sees a pilot's end as long after it
// as Site.Seen says, a constant unless it is given. Each host has all the disk of its site's largest, and tasks fill
// none of it. Where files travel, all of a task's do so before it begins, and those of several tasks do not slow each
// other; as in production, nobody who gives tasks to workers reckons with it. The matching is that of the embedded
// cluster: of an HTCondor pool it has the rate and the delay only. A site's other users appear as the waits that are
// drawn, which do not depend on what is held there; or, where the site has a queue of its own (Site.Batch), as jobs in
// it, among which pilots wait for as long as its policy says.
//
// The one invariant: the same scenario gives the same trace. There is no clock and no random number here that is not
// drawn by name from a seed, and no map is ranged over where order matters.
package sim
