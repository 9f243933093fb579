// Package clustering decides which tasks of a workflow share a job. The run that makes the jobs, the planner that
// reckons with them and the validator that checks the plan all ask it. A Rule says how, Jobs does it; package dag has
// the algorithms.
//
// A clustered job runs its tasks one after another on the worker that it has, and takes what the largest of them needs.
// That costs one way to a worker instead of many, and delays the tasks behind it. A rule never makes tasks wait for
// each other in a circle: jobs, taken as the vertices of a graph, have no cycle.
//
// For schedulers without jobs of several tasks, such as DAGMan, Join returns a workflow whose tasks are the jobs: each
// is a script that runs its tasks one after another. The script runs each task in a folder of its own that holds the
// files that the task reads, and takes from there the files that the task says it makes. The first task that fails ends
// the job with its exit status; a scheduler that tries the job again repeats all of it. The caller writes the scripts
// to files.
package clustering
