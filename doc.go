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
// Site.NewGlidein and Site.NewAttempt begin the life of a glidein and of its attempts. A caller stores a changed object
// and the returned history entries together. Package resubmit decides whether a glidein gets another attempt, and
// package api sends the objects over the network.
//
// An error whose kind matters to the caller is an Error; KindOf returns its Kind.
//
// Times are UTC. In external formats, the name of a field includes its unit: walltime_s is a number of seconds (type
// Seconds), and memory_mib a number of MiB (2²⁰ bytes).
package corral
