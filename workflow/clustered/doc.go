// Package clustered makes of a workflow one whose tasks are its jobs: tasks that share a job become one task, a script
// that runs them one after another. Another scheduler, such as DAGMan, which has no jobs of several tasks, can then run
// what a run of Corral would.
//
// The script runs each task in a folder of its own, in which are the files that it reads, and takes from there those
// that it says it makes. The first task that fails ends the job with its exit status. A scheduler that tries the job
// again repeats all of it: that is what Corral's own runs do better.
//
// Everything here is a function of the workflow; the caller writes the scripts to files.
package clustered
