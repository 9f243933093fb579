// Package dag provides the graph of a workflow and computes, without any I/O, its order, levels, ranks, clustering and
// bounds.
//
// Nodes are the numbers 0 to n-1; their meaning is up to the caller. An edge leads from a parent to a child, which may
// start only when the parent is done. The level of a node without parents is 0; the level of any other node is one more
// than the highest level of its parents; the width of a graph is the size of its largest level. Costs are durations and
// never negative.
//
// New makes a Graph. ListSchedule and LowerBound estimate how long it takes on a number of cpus. ByLevel, ByRuntime,
// ByLabel and Chains divide its nodes into groups, each of which can be one job, and Quotient returns the graph of the
// groups. The package does not know what a job is: package workflow/clustering chooses among the groupings.
//
// The invariant: a Graph has no cycle. Only Grow changes a Graph; until then it is safe for concurrent use. Slices
// returned by its methods belong to the Graph and must not be modified.
//
// In this package, Juve 2012 is Gideon Juve: Resource Management for Scientific Workflows, PhD thesis, University of
// Southern California, 2012.
package dag
