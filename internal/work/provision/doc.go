// Package provision stands between the planner and the rest: it makes a planner's problem of what corrald knows (a
// workflow, sites with their limits and waits, the cluster that runs the tasks), and glideins of a plan.
//
// What it knows of the future are estimates: of a site's waits, from the waits of earlier attempts of like shape; of
// the time until a pilot's workers are there, by the batch system. Each that is assumed and not measured is said in the
// plan's reasons.
package provision
