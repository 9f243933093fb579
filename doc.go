// Package corral defines the objects of pilot-job provisioning and their legal state changes.
//
// A scientist has a workflow and accounts at sites. To obtain processors for a limited time, Corral submits one
// ordinary batch job to a site. That job is a pilot job, and a request for one is a Glidein. The pilot's workers join
// the user's personal Cluster, where the workflow's tasks run without waiting in the batch queue again.
//
//   - A Site is a place that can run batch jobs. A setup job installs a worker package there once; a
//     cleanup job removes everything.
//   - A Glidein requests hosts × cpus from a site for a walltime. Each of its pilot jobs is an attempt.
//   - A Job is one batch job of Corral at a site: setup, pilot or cleanup.
//   - Workers register in a Cluster; a Run executes one workflow on one cluster.
//
// All objects are values, without I/O, clock or goroutines. An object changes state only through its Apply method,
// which looks up the move in the table of transition.go. A glidein's state is a pure function of its attempts and of
// the request (Glidein.Derive).
//
// Times are UTC. In external formats, the name of a field with a duration includes the unit (walltime_s).
package corral
