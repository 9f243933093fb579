// Package clustering decides which tasks of a workflow share a job. It is for all who need to know: the run that makes
// the jobs, the planner that reckons with them, and the validator that checks it. A Rule says how, Jobs does it;
// package dag has the algorithms.
//
// A clustered job runs its tasks one after another on the worker that it has, and takes what the largest of them needs.
// That costs one way to a worker instead of many, and keeps back the tasks behind it. No rule makes tasks wait for each
// other in a circle: jobs, taken as the vertices of a graph, have no cycle.
package clustering
