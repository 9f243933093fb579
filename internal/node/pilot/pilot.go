// Package pilot is the pilot job: what holds a site's nodes for an attempt, and runs workers there until it must leave.
//
// A job finds its order in its directory and leaves its report there (package jobfiles). The life of an attempt:
//
//  1. Run takes the attempt's lease, a directory that only one process can make. Whichever comes second reports
//     a duplicate and touches nothing.
//  2. The supervisor checks its node, finds the other nodes of the batch job, and dials corrald. Corrald gives it the
//     lease in its own books, and from then on passes on what users ask for: drain, leave.
//  3. It starts a worker for each host that it was asked for: a process of its own on its node, and on each other node
//     a host (Host), which srun or ssh starts there and which keeps a worker in turn.
//  4. The workers serve a personal cluster, which sends them tasks: corrald's own dispatcher (package embedded) or an
//     HTCondor pool (condorworker). Workers that die are started again; hosts that cannot serve are lost, and the
//     others go on.
//  5. It leaves when it is asked to, when nothing is left to do, when its walltime ends, or when the site takes
//     the node back. Everything that descends from it is ended, its scratch directory is removed, and then it reports.
//
// The work is divided so: package attempt decides, package process has the processes and the words between them,
// condorworker knows HTCondor, and here is what connects them: supervisor, uplink to corrald, host, lease. The jobs
// that look after a site are in sitejob. Probe and Relay are commands that corrald starts at a site without a job.
//
// The invariants: at most one supervisor of an attempt ever starts workers, and when it has reported, no process that
// descends from it is left. The token is never in an argument, an environment variable or a file of the supervisor's
// making. Time left is counted on the monotonic clock from the supervisor's start: a node whose clock is set in mid-run
// neither ends a pilot early nor lets it overrun its walltime.
package pilot
