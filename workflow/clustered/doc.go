// Package clustered makes of a workflow one whose tasks are its jobs: tasks that share a job become one task, a script
// that runs them one after another. Somebody else's scheduler, such as DAGMan, which knows no jobs of several tasks,
// then runs what a run of Corral would.
//
// The script runs each task in a folder of its own, in which are the files that it reads, and takes from there those
// that it says it makes. The first task that fails ends the job with its exit status. A scheduler that tries the job
// again repeats all of it: that is what Corral's own runs do better.
//
// Everything here is a function of the workflow; who writes the scripts down is for others to say.
package clustered
