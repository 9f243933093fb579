// Package clustering decides which tasks of a workflow share a job. It is used by the run that makes the jobs, the
// planner that takes them into account, and the validator that checks the plan. A Rule specifies the method, and Jobs
// applies it; package dag contains the algorithms.
//
// A clustered job runs its tasks one after another on one worker, and needs the maximum of their resources. It has the
// overhead of one job instead of many, but delays the tasks behind it. Clustering never creates a cycle: the jobs, as
// the vertices of a graph, are acyclic.
//
// For schedulers without jobs of several tasks, such as DAGMan, Join returns a workflow whose tasks are the jobs: each
// is a script that runs its tasks one after another. The script runs each task in a folder of its own that contains the
// files that the task reads, and moves the task's declared outputs out of it. The first task that fails ends the job
// with its exit status; if a scheduler retries the job, all of it is repeated. The caller writes the scripts to files.
package clustering
