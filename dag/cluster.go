package dag

// ByLevel is level clustering (Juve 2012, §2.8): the nodes of each level are split into min(n, size of
// the level) groups, each of which becomes one job that runs its nodes one after another. Nodes of one
// level never depend on each other, so any split is legal; with n = the number of cpus the overhead is
// paid once for each cpu and level, and no parallelism is lost.
//
// kind, if not nil, says which nodes may share a group: those of equal kind. A job asks for its cpus
// and memory once and holds them until its last node is done, so a group of a one-cpu and an eight-cpu
// node would hold eight cpus for both; callers therefore give nodes of equal needs equal kinds. Each
// kind of a level gets at least one group, and the others go one by one to the kind whose groups are
// largest; a level with more than n kinds gets one group for each.
//
// Every node is in exactly one group. Groups come by level, within it by their kind's first node;
// nodes within a group ascend, and group sizes of one kind differ by at most one. n below 1 counts as 1.
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

// byKind parts nodes by kind, kinds in order of their first node.
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

// shares says how many of n groups each class gets, at least one.
func shares(classes [][]int, n int) []int {
	count := make([]int, len(classes))
	for c := range count {
		count[c] = 1
	}
	for range n - len(classes) {
		largest := 0
		for c := range classes { // len/count compared without division
			if len(classes[c])*count[largest] > len(classes[largest])*count[c] {
				largest = c
			}
		}
		count[largest]++
	}
	return count
}

// split cuts nodes into n runs of neighbours whose lengths differ by at most one.
func split(nodes []int, n int) [][]int {
	runs := make([][]int, n)
	for k := range runs {
		from, to := len(nodes)*k/n, len(nodes)*(k+1)/n
		runs[k] = nodes[from:to:to]
	}
	return runs
}
