// Package plot draws plans: the cpus that a plan's pilots hold over time, together with the cpus that the plan's tasks
// use, and the front of makespan and core-hours from which the plan was chosen. It also draws charts and schedules for
// reports.
//
// The content of a picture and its layout are separate. A Staircase and a Front contain only numbers and texts, which
// pure functions compute from a plan; Write lays out figures, one above the other, and encodes them as PNG or SVG. All
// times are relative to the start of the plan. The package itself does no I/O: Write writes to an io.Writer.
package plot
