// Package provision stands between the planner and the rest: it makes a planner's problem of what corrald knows (a
// workflow, sites with their limits and waits, the cluster that runs the tasks), and glideins of a plan.
//
// It estimates the future: a site's waits, from the waits of earlier attempts of like shape; the time until a pilot's
// workers are there, by the batch system. The plan's reasons list each estimate that is assumed and not measured.
package provision
