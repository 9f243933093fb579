// Package plot draws plans: the cpus that a plan's pilots hold over time, with the cpus that its tasks use, and the
// front of makespan and core-hours from which the plan was chosen. It also draws charts and schedules for reports.
//
// The content of a picture and its layout are separate. A Staircase and a Front are plain numbers, made from a plan by
// pure functions; Write lays figures out, one above the other, and encodes them as PNG or SVG. All times count from the
// start of the plan. The package does no I/O: Write writes to an io.Writer.
package plot
