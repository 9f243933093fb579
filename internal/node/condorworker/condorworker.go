// Package condorworker implements a pilot's worker that joins an HTCondor pool, and its supporting code.
//
// A worker is a condor_master and its descendants: a startd, which offers the worker's CPUs and memory to the pool, and
// a starter for each job that the pool sends. They are HTCondor's own programs, from a package that a setup job
// installed, with a configuration that package condor writes. The worker process only starts the master, reads the
// daemons' logs, and ends the daemons. The logs alone show whether the pool accepted the worker, refused it, or sent it
// a job; the worker needs none of HTCondor's tools, and no connection of its own.
//
// Before that, the supervisor finds a way into the pool (Joining): it finds the installed package, and determines how
// the pool's schedd can reach this node (package broker). A host does the same for its own node (FindWay). Inside a
// job, Task is the program that corrald submitted to the schedd: it runs the tasks that the job contains.
//
// The invariant is that of all workers: when Serve has returned, no descendant of this process is left.
package condorworker
