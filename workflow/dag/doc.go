// Package dag provides the graph of a workflow and computes, without any I/O, its order, levels, ranks, clustering and
// bounds.
//
// Nodes are the numbers 0 to n-1; their meaning is up to the caller. An edge leads from a parent to a child, which may
// start only when the parent is done. The level of a node without parents is 0; the level of any other node is one more
// than the highest level of its parents; the width of a graph is the size of its largest level. Costs are durations and
// never negative.
//
// The invariant: a Graph has no cycle and never changes, so it is safe for concurrent use. Slices returned by its
// methods belong to the Graph and must not be modified.
package dag
