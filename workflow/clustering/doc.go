// Package clustering decides which tasks of a workflow share a job. It is used by the run, which makes the jobs, by the
// planner, which takes the jobs into account, and by the validator, which checks the plan. A Rule specifies the method,
// and Jobs applies the rule; package dag contains the algorithms. Parse parses a Rule, and Choose finds the best one
// for a number of cpus and an overhead.
//
// A clustered job runs its tasks one after another on one worker, and needs the maximum of their resources. It has the
// overhead of one job instead of many, but delays the tasks that wait for one of its tasks. Clustering never creates a
// cycle: the graph whose vertices are the jobs is acyclic.
//
// For schedulers that do not support jobs of several tasks, such as DAGMan, Join returns a workflow whose tasks are the
// jobs: each job of several tasks is a script that runs these tasks one after another. The script runs each task in a
// folder of its own that contains the files that the task reads, and moves the task's declared outputs out of it. The
// first task that fails ends the job with that task's exit status; if a scheduler retries the job, the whole job is
// repeated. The caller must write the scripts to files.
package clustering
