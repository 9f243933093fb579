// Package provision requests the pilots of plans as glideins, and revises plans while their runs last. It creates a
// planner's problem from corrald's data: a workflow, sites with their limits and waits, and the cluster that runs the
// tasks.
//
// It estimates a site's waits from the waits of earlier attempts with a similar shape, and the time until a pilot's
// workers are ready according to the batch system. The plan's reasons list each estimate that is assumed rather than
// measured.
package provision
