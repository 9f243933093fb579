// Package dag provides the graph of a workflow as pure logic: order, levels, ranks, clustering, bounds, and the
// frontier of nodes that may run next.
//
// Nodes are the numbers 0 to n-1; their meaning is up to the caller. An edge leads from a parent to a child, which may
// start only when the parent is done. The level of a node is 0 without parents, otherwise one more than the highest
// level of its parents; the width is the size of the largest level. Costs are durations and never negative.
//
// The invariant: a Graph has no cycle and never changes, so it is safe for concurrent use. Slices returned by its
// methods belong to it and must not be modified. Only a Frontier has state, and must be owned by one goroutine.
package dag
