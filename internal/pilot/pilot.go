// Package pilot is what runs at a site: the setup job, the pilot job and the cleanup job.
//
// A job finds its order in its directory and leaves its report there (package order). A pilot job is one supervisor
// process that takes the attempt's lease, starts one worker process for each host it was asked for, and watches them;
// on the other nodes of a batch job there is a host process between it and the worker. It decides why and when the
// pilot leaves. The workers serve one of two kinds of clusters: corrald's own dispatcher, to which they connect and
// whose tasks they run, which is package pool's business; or an HTCondor pool, with a condor_master each. Supervisor
// and worker talk over a socket pair: the token is never in an argument, an environment variable or a file of the
// supervisor's making.
//
// The invariants: at most one supervisor of an attempt ever starts workers (the lease), and when a
// supervisor has reported, no process that descends from it is left. For the second it makes itself
// the reaper of its orphans, so that what a killed worker leaves behind stays its descendant.
//
// Time left is counted on the monotonic clock from the supervisor's start: a node whose clock is set
// in mid-run neither ends early nor overruns its walltime.
package pilot

import "os"

// hostName names this node in reports and leases.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
