// Package plot draws plans: the cpus that a plan's pilots hold over time, with the cpus that its tasks use, and the
// front of makespan against core-hours from which the plan was chosen.
//
// The content of a picture and its layout are decided apart. A Staircase and a Front are plain numbers, made from a
// plan by pure functions; Write lays them out, one above the other, and encodes them as PNG or SVG. All times count
// from the plan's beginning. It does no I/O: what it writes goes to an io.Writer.
package plot
