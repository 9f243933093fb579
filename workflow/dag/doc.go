// Package dag is the graph under a workflow, as plain logic: order, levels, ranks, clustering and bounds.
//
// Nodes are the numbers 0 to n-1; what they stand for is the caller's business. An edge leads from a
// parent to a child, which may start only when the parent is done. The level of a node is 0 without
// parents, else one more than the highest level among its parents; the width is the size of the
// largest level. Costs are durations and never negative.
//
// The one invariant: a Graph has no cycle and never changes, so it may be shared freely. Slices that
// its methods return belong to it and must not be written to.
package dag
