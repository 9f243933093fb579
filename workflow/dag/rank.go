package dag

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"
)

// UpwardRanks returns the upward rank of each node: the node's own cost plus the highest rank of its children, i.e. the
// length of the longest path from the node's start to the end of the graph. It is the rank_u of HEFT (Topcuoglu,
// Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing, IEEE TPDS 13(3),
// 2002, eq. 8) with one cost for all processors and no cost on the edges. cost has one entry for each node. Sums
// saturate at the maximum Duration.
func (g *Graph) UpwardRanks(cost []time.Duration) []time.Duration { return g.ranks(cost, nil) }

// ByRank returns the nodes by descending upward rank, in topological order if ranks are equal, so that nodes without a
// cost come after their parents. edge returns the cost of an edge; nil: edges cost nothing.
func (g *Graph) ByRank(cost []time.Duration, edge func(parent, child int) time.Duration) []int {
	rank, order := g.ranks(cost, edge), slices.Clone(g.order)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	return order
}

func (g *Graph) ranks(cost []time.Duration, edge func(parent, child int) time.Duration) []time.Duration {
	rank := make([]time.Duration, g.Len())
	for k := g.Len() - 1; k >= 0; k-- {
		i := g.order[k]
		var below time.Duration
		for _, c := range g.Children(i) {
			if edge == nil {
				below = max(below, rank[c])
			} else {
				below = max(below, add(edge(i, c), rank[c]))
			}
		}
		rank[i] = add(cost[i], below)
	}
	return rank
}

// CriticalPath returns the length of the longest path: the highest upward rank.
func (g *Graph) CriticalPath(cost []time.Duration) time.Duration {
	var longest time.Duration
	for _, r := range g.UpwardRanks(cost) {
		longest = max(longest, r)
	}
	return longest
}

// LowerBound returns max(critical path, work ÷ cpus): no schedule on the given number of uniform cpus is shorter. Work
// is the sum of cost × need over the nodes, in cpu-time; need has the same meaning as for ListSchedule. Without cpus no
// node ever ends, and the bound is the maximum Duration.
func LowerBound(g *Graph, cost []time.Duration, need []int, cpus int) time.Duration {
	if cpus < 1 {
		return math.MaxInt64
	}
	var high, low, carry uint64 // 128 bits, because the work of a large workflow may exceed 64 bits
	for i, c := range cost {
		h, l := bits.Mul64(uint64(c), uint64(needOf(need, i)))
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	var share time.Duration = math.MaxInt64
	if high < uint64(cpus) {
		quotient, _ := bits.Div64(high, low, uint64(cpus))
		share = time.Duration(min(quotient, math.MaxInt64))
	}
	return max(g.CriticalPath(cost), share)
}

// needOf returns the number of cpus that node i needs, or one if need is nil.
func needOf(need []int, i int) int {
	if need == nil {
		return 1
	}
	return need[i]
}

func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
