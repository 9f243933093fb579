// Package condorworker is a pilot's worker that joins an HTCondor pool, and what such workers need besides.
//
// A worker is a condor_master and what descends from it: a startd, which offers the worker's cpus and memory to the
// pool, and a starter for each job that the pool sends. They are HTCondor's own programs, from a package that a setup
// job installed, with a configuration that package condor writes. The worker process only starts the master, reads what
// the daemons log, and ends them. Their log alone tells it whether the pool took the worker in, refused it, or sent it
// a job; it needs none of HTCondor's tools, and no connection of its own.
//
// Before that, the supervisor finds the way into the pool (Joining): the installed package, and how the pool's schedd
// can reach this node (package broker). A host does the same for its own node (FindWay). Inside a job, Task is the
// program that corrald submitted to the schedd: it runs the tasks that the job carries.
//
// The invariant is that of all workers: when Serve has returned, no process that descends from this one is left.
package condorworker
