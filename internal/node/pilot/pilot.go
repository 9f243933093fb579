// Package pilot implements the pilot job, which holds a site's nodes for an attempt, and runs workers there until it
// must leave.
//
// A job finds its order in its directory and leaves its report there (package jobfiles). The phases of an attempt:
//
//  1. Run takes the attempt's lease, a directory that only one process can create. Any other process reports
//     a duplicate and changes nothing.
//  2. The supervisor checks its node, finds the other nodes of the batch job, and dials corrald. Corrald records it as
//     the holder of the lease, and from then on forwards users' requests: drain, leave.
//  3. The supervisor starts a worker for each requested host: a separate process on its own node, and on each other
//     node a host (Host), which srun or ssh starts there and which runs a worker in turn.
//  4. The workers join a cluster, which sends them tasks: corrald's own dispatcher (package embedded) or an
//     HTCondor pool (condorworker). Workers that die are restarted; hosts that cannot serve are lost, and the
//     others continue.
//  5. The pilot leaves when it is asked to, when no work is left, when its walltime ends, or when the site reclaims the
//     node. All its descendants are ended, its scratch directory is removed, and then it reports.
//
// Other packages share the work: package attempt decides, package process manages the processes and the messages
// between them, and condorworker handles HTCondor. This package connects them: supervisor, uplink to corrald, host,
// lease. Setup and Cleanup are the jobs that maintain a site. Probe and Relay are commands that corrald starts at a
// site without a job.
//
// The invariants: at most one supervisor of an attempt ever starts workers, and when it has reported, none of its
// descendants is left. The token is never in an argument, an environment variable or a file that the supervisor
// creates. Remaining time is measured with the monotonic clock from the supervisor's start: if a node's clock is
// changed during the run, the pilot neither ends early nor overruns its walltime.
package pilot
