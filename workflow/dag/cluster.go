package dag

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// ByLevel returns the groups of level clustering (Juve 2012, §2.8): the nodes of each level are split into min(n, size
// of the level) groups, and each group becomes one job that runs its nodes one after another. Nodes of one level never
// depend on each other, so any split is valid; if n is the number of cpus, the overhead occurs once per cpu and level,
// and no parallelism is lost.
//
// kind, if not nil, restricts groups to nodes of equal kind. A job requests its cpus and memory once and holds them
// until its last node is done, so a group of a one-cpu and an eight-cpu node would hold eight cpus for both; callers
// therefore assign equal kinds only to nodes with similar needs. Each kind of a level gets at least one group, and the
// remaining groups are assigned one by one to the kind with the largest groups; a level with more than n kinds gets one
// group for each kind.
//
// Every node is in exactly one group. Groups are sorted by level, then by the first node of their kind; nodes within a
// group are in ascending order, and the sizes of groups of one kind differ by at most one. A value of n below 1 counts
// as 1.
func ByLevel(g *Graph, n int, kind []int) [][]int {
	var groups [][]int
	rest := g.Order()
	for _, size := range g.LevelSizes() {
		classes := byKind(rest[:size], kind)
		for c, count := range shares(classes, min(max(n, 1), size)) {
			groups = append(groups, split(classes[c], count)...)
		}
		rest = rest[size:]
	}
	return groups
}

// byKind divides nodes into one class for each kind; the classes are in the order of their first nodes.
func byKind(nodes, kind []int) [][]int {
	if kind == nil {
		return [][]int{nodes}
	}
	var classes [][]int
	place := make(map[int]int) // :: kind → index in classes
	for _, i := range nodes {
		c, ok := place[kind[i]]
		if !ok {
			c = len(classes)
			place[kind[i]] = c
			classes = append(classes, nil)
		}
		classes[c] = append(classes[c], i)
	}
	return classes
}

// shares returns how many of n groups each class gets; the number is at least one.
func shares(classes [][]int, n int) []int {
	count := make([]int, len(classes))
	for c := range count {
		count[c] = 1
	}
	for range n - len(classes) {
		largest := 0
		for c := range classes { // compare len/count without division
			if len(classes[c])*count[largest] > len(classes[largest])*count[c] {
				largest = c
			}
		}
		count[largest]++
	}
	return count
}

// split divides nodes into n consecutive runs whose lengths differ by at most one.
func split(nodes []int, n int) [][]int {
	runs := make([][]int, n)
	for k := range runs {
		from, to := len(nodes)*k/n, len(nodes)*(k+1)/n
		runs[k] = nodes[from:to:to]
	}
	return runs
}

// ByRuntime splits the nodes of each level into groups whose total costs are about equal, and at most target; it tries
// to use as few groups as possible. A node that costs more than target is a group by itself. Nodes share a group only
// if their kinds are equal; if kind is nil, any nodes of a level may share one.
//
// Every node is in exactly one group. Groups are sorted by level, then by their first node; nodes within a group are in
// ascending order.
func ByRuntime(g *Graph, cost []time.Duration, target time.Duration, kind []int) [][]int {
	var groups [][]int
	rest := g.Order()
	for _, size := range g.LevelSizes() {
		level := len(groups)
		for _, class := range byKind(rest[:size], kind) {
			groups = append(groups, balanced(class, cost, target)...)
		}
		slices.SortFunc(groups[level:], func(a, b []int) int { return a[0] - b[0] })
		rest = rest[size:]
	}
	return groups
}

// balanced splits nodes into groups that cost at most target: it starts with the minimum number of groups for the total
// cost and increases the number until the split succeeds, which it does at the latest with as many groups as nodes.
// Nodes that cost too much to share a group are handled separately.
func balanced(nodes []int, cost []time.Duration, target time.Duration) (groups [][]int) {
	longest := slices.Clone(nodes)
	slices.SortStableFunc(longest, func(a, b int) int { return cmp.Compare(cost[b], cost[a]) })
	for len(longest) > 0 && cost[longest[0]] >= target {
		groups = append(groups, longest[:1:1])
		longest = longest[1:]
	}
	if len(longest) == 0 {
		return groups
	}
	var work float64
	for _, i := range longest {
		work += float64(cost[i])
	}
	for n := max(1, int(min(work/float64(target), float64(len(longest))))); ; n = min(n+1+n/50, len(longest)) {
		shared, ok := longestFirst(longest, cost, target, n)
		if ok || n == len(longest) {
			return append(groups, shared...)
		}
	}
}

// longestFirst distributes nodes, which must be sorted by descending cost, over n groups; each node goes to the group
// with the lowest load so far (Graham 1969). ok is false if a group of several nodes costs more than target.
func longestFirst(nodes []int, cost []time.Duration, target time.Duration, n int) (groups [][]int, ok bool) {
	groups, ok = make([][]int, n), true
	loads := make(endQueue, n) // end of each group; the initial order is a heap
	for k := range loads {
		loads[k].node = k
	}
	for _, i := range nodes {
		l := &loads[0]
		l.at = add(l.at, cost[i])
		groups[l.node] = append(groups[l.node], i)
		ok = ok && (l.at <= target || len(groups[l.node]) == 1)
		heap.Fix(&loads, 0)
	}
	groups = slices.DeleteFunc(groups, func(group []int) bool { return len(group) == 0 }) // without cost
	for _, group := range groups {
		slices.Sort(group)
	}
	return groups, ok
}

// Chains returns the groups of vertical clustering: a node and its only child share a group if the node is the child's
// only parent and their kinds are equal; this is repeated along the chain. No node waits longer than it would without
// clustering.
//
// Every node is in exactly one group. Groups are sorted by the level of their first node, then by its number; within a
// group parents come before children.
func Chains(g *Graph, kind []int) [][]int {
	var groups [][]int
	group := make([]int, g.Len()) // :: node → its group
	for _, i := range g.Order() {
		if parents := g.Parents(i); len(parents) == 1 {
			p := parents[0]
			if len(g.Children(p)) == 1 && (kind == nil || kind[p] == kind[i]) {
				group[i] = group[p]
				groups[group[i]] = append(groups[group[i]], i)
				continue
			}
		}
		group[i] = len(groups)
		groups = append(groups, []int{i})
	}
	return groups
}

// ByLabel puts nodes with the same label into one group; a node with a negative label is a group of its own. If groups
// would wait for each other, so that none of them could begin, they are split: a node then shares a group only with the
// nodes of its label that come after the same number of label changes.
//
// Every node is in exactly one group. Groups are sorted by the level of their first node, then by its number; within a
// group parents come before children.
func ByLabel(g *Graph, label []int) [][]int {
	l := newLabels(g, label)
	l.peel(g.Children, g.Parents)
	l.peel(g.Parents, g.Children)
	part := make([]int, g.Len()) // :: node in the tangle → number of label changes before it
	groups, known := [][]int{}, map[[2]int]int{}
	for _, i := range g.Order() {
		if l.tangled(i) {
			for _, p := range g.Parents(i) {
				if changes := part[p]; l.tangled(p) {
					if l.of[p] != l.of[i] {
						changes++
					}
					part[i] = max(part[i], changes)
				}
			}
		}
		key := [2]int{l.of[i], part[i]}
		k, ok := known[key]
		if !ok {
			k = len(groups)
			known[key] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	return groups
}

// labels represents the graph of the labels of a graph's nodes; the graph of the labels may have cycles.
type labels struct {
	of     []int   // :: node → its label
	nodes  [][]int // :: label → its nodes
	peeled []bool  // :: label → whether the label is neither on a cycle nor between two cycles
}

// newLabels numbers the labels. A node without a label gets a label of its own.
func newLabels(g *Graph, label []int) *labels {
	l := &labels{of: make([]int, g.Len())}
	known := map[int]int{}
	for i := range l.of {
		k, ok := known[label[i]]
		if label[i] < 0 || !ok {
			k = len(l.nodes)
			known[label[i]] = k
			l.nodes = append(l.nodes, nil)
		}
		l.of[i] = k
		l.nodes[k] = append(l.nodes[k], i)
	}
	l.peeled = make([]bool, len(l.nodes))
	return l
}

// tangled reports whether the group of node i might wait for itself.
func (l *labels) tangled(i int) bool { return !l.peeled[l.of[i]] }

// peel repeatedly marks labels as peeled if they wait for no label that is not peeled; next and before determine the
// direction of edges.
func (l *labels) peel(next, before func(int) []int) {
	missing := make([]int, len(l.nodes)) // number of edges from labels that are not peeled
	var free []int
	for k, nodes := range l.nodes {
		for _, i := range nodes {
			for _, p := range before(i) {
				if l.of[p] != k && l.tangled(p) {
					missing[k]++
				}
			}
		}
		if missing[k] == 0 && !l.peeled[k] {
			free = append(free, k)
		}
	}
	for len(free) > 0 {
		k := free[len(free)-1]
		free = free[:len(free)-1]
		l.peeled[k] = true
		for _, i := range l.nodes[k] {
			for _, c := range next(i) {
				to := l.of[c]
				if to == k || l.peeled[to] {
					continue
				}
				if missing[to]--; missing[to] == 0 {
					free = append(free, to)
				}
			}
		}
	}
}

// Quotient returns the graph whose nodes are groups of nodes of g: an edge connects two groups if an edge of g connects
// a node of one to a node of the other. Every node must be in exactly one group, and the result must not have a cycle;
// the clustering functions of this package ensure both.
func Quotient(g *Graph, groups [][]int) *Graph {
	of := make([]int, g.Len())
	for k, nodes := range groups {
		for _, i := range nodes {
			of[i] = k
		}
	}
	edges := make([][2]int, 0, g.Edges())
	for i := range of {
		for _, c := range g.Children(i) {
			if of[i] != of[c] {
				edges = append(edges, [2]int{of[i], of[c]})
			}
		}
	}
	slices.SortFunc(edges, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	q, err := New(len(groups), slices.Compact(edges))
	if err != nil {
		panic("dag: groups wait for themselves: " + err.Error())
	}
	return q
}
