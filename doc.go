// Package corral holds the nouns of pilot-job provisioning and their legal moves.
//
// A scientist has a workflow and accounts at sites. Corral asks a site once, through one ordinary
// batch job, for processors for a while: that job is a pilot job, and a request for one is a
// Glidein. The pilot's workers join the user's personal Cluster, where the workflow's tasks run
// without meeting the batch queue again.
//
//   - A Site is a place that can run batch jobs. A setup job installs a worker package there once, a
//     cleanup job removes everything.
//   - A Glidein asks a site for hosts × cpus for a walltime. Each of its pilot jobs is an attempt.
//   - A Job is one batch job of ours at a site: setup, pilot or cleanup.
//   - A Cluster is where workers register; a Run drives one workflow on one cluster.
//
// Everything here is a value: no I/O, no clock, no goroutine. An object changes state only through
// its Apply method, which looks the move up in the table of transition.go; a glidein's state is not
// stored knowledge but a pure function of its attempts and of what was asked (Glidein.Derive).
//
// Times are UTC. Durations at every edge carry their unit in the field's name (walltime_s).
package corral
