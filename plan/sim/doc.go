// Package sim simulates workflows on pilots in virtual time. It makes no decisions of its own: the production code
// decides.
//
//	which tasks are released, retried, given up     internal/decide/execution
//	which worker gets which job, and starts it when internal/decide/matching
//	which attempts of glideins are submitted        internal/decide/reconcile: Decide, World.Apply
//	when a pilot leaves, and why                    internal/decide/attempt
//
// A Scenario describes the work, the sites, the pilots to request and the random behaviour; Run simulates it and
// returns a Trace: the records of the run, which have the form of a real run's journal, and the resources that the
// pilots held. Runs simulates many scenarios in parallel. WorkOf and AsksFor convert the work and the pilots of a plan.
// A Spread, and the functions that return errors, failures and waits, make a Scenario random. Instants are durations
// since the beginning, in whole milliseconds.
//
// The time that a pilot waits in the queue of a batch system is random, or computed by package plan/sim/queue. Package
// plan/sim/cloud simulates ensembles of workflows with fewer rules, and faster. Package plan/planner/montecarlo
// simulates a plan many times.
//
// # The model
//
// A pilot is submitted when reconcile.Decide requires it, at its Submit time at the earliest, and waits for a time that
// its site determines, usually at random; then it starts if the site has enough free cpus and no maintenance period
// overlaps its walltime. Its workers register after the site's overhead. It stays until its walltime, less production's
// reserve, has passed, until it has been idle for too long, until it is asked to leave, or until it fails. A task runs
// for its Runtime, multiplied by the factor for its host (Speed), and fails according to Failures. Each start costs the
// cluster's hop: the time that a job takes to reach a free worker. If the cluster can reuse a worker faster than that,
// the hop has two parts: the first is the time that the job takes to enter the queue, the second the shorter time that
// the reuse of a worker takes. The rate of starts is at most the cluster's rate.
//
// Events of the same instant happen in the order in which they were scheduled; in reality that order is random.
//
// The simulation is a heap of events, each of which may schedule others. The package replaces the environment of
// production's rules: time (clock), the driver of a run (run), the state of the dispatcher (cluster), workers (member),
// batch systems (site) and supervisors of pilots (pilot). Production polls its state many times a second, almost always
// without effect. Here it is known in advance which polls have an effect, and the others are omitted. Therefore a run
// of 5,000 tasks takes about 30 ms.
//
// # Limitations
//
// Writing the journal and communicating with a site take no time, and corrald does not poll: it sees the end of a pilot
// after the delay Site.Seen, which is a constant by default. Each host has all the disk space of its site's largest
// host, and tasks use none of it. All file transfers of a task happen before the task begins, and transfers of several
// tasks do not slow each other down; as in production, the assignment of tasks to workers ignores transfers. Jobs are
// matched with workers as in the embedded cluster; for an HTCondor pool only the rate and delay are modelled. Other
// users of a site are modelled as random waits, which do not depend on the resources held there, or, if the site has a
// queue of its own (Site.Batch), as jobs in that queue, among which pilots wait according to its policy.
//
// The invariant: the same scenario yields the same trace. The package does not read the system clock, it derives all
// random numbers by name from a seed, and it iterates over no map where the order matters.
package sim
