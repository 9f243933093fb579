package dag

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Graph is a directed acyclic graph that only Grow modifies. It stores its edges twice, by parent and by child, each
// time in two flat arrays, so that 100,000 nodes need only a few megabytes.
type Graph struct {
	parents  adjacency
	children adjacency
	levels   []int // level of each node
	sizes    []int // number of nodes in each level
	order    []int // nodes by level, then by number; nodes added by Grow follow at the end
}

// An adjacency lists the neighbours of node i, ascending, in flat[start[i]:start[i+1]].
type adjacency struct {
	start []int
	flat  []int
}

func (a adjacency) of(i int) []int { return a.flat[a.start[i]:a.start[i+1]:a.start[i+1]] }

// A CycleError reports that the edges passed to New form a cycle.
type CycleError struct {
	Cycle []int // each node is a parent of the next, and the last of the first; the lowest number comes first
}

func (e *CycleError) Error() string {
	var b strings.Builder
	b.WriteString("cycle: ")
	for _, i := range e.Cycle {
		b.WriteString(strconv.Itoa(i) + " -> ")
	}
	b.WriteString(strconv.Itoa(e.Cycle[0]))
	return b.String()
}

// New returns the graph of n nodes with the given edges, each {parent, child}. Repeated edges are ignored. The error is
// a *CycleError if the edges form a cycle, and another error if an edge names a node that does not exist. The edges are
// not retained.
func New(n int, edges [][2]int) (*Graph, error) {
	if n < 0 {
		return nil, fmt.Errorf("graph of %d nodes", n)
	}
	for _, e := range edges {
		if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= n {
			return nil, fmt.Errorf("edge %d -> %d in a graph of %d nodes", e[0], e[1], n)
		}
	}
	children := bySource(n, sortedByTarget(n, edges))
	g := &Graph{children: children, parents: children.reverse()}
	if rest := g.sort(); rest != nil {
		return nil, &CycleError{Cycle: g.cycleAmong(rest)}
	}
	return g, nil
}

// sortedByTarget returns edges sorted by target; it is the first of two counting sorts that sort edges by both ends in
// linear time.
func sortedByTarget(n int, edges [][2]int) [][2]int {
	next := make([]int, n+1)
	for _, e := range edges {
		next[e[1]+1]++
	}
	accumulate(next)
	sorted := make([][2]int, len(edges))
	for _, e := range edges {
		sorted[next[e[1]]] = e
		next[e[1]]++
	}
	return sorted
}

// bySource returns the targets of each source, without duplicates; edges must be sorted by target.
func bySource(n int, edges [][2]int) adjacency {
	last := make([]int, n) // last target + 1 of each source: equal targets are adjacent
	a := adjacency{start: make([]int, n+1)}
	kept := edges[:0]
	for _, e := range edges {
		if last[e[0]] == e[1]+1 {
			continue
		}
		last[e[0]] = e[1] + 1
		kept = append(kept, e)
		a.start[e[0]+1]++
	}
	accumulate(a.start)
	a.flat = make([]int, len(kept))
	next := slices.Clone(a.start)
	for _, e := range kept {
		a.flat[next[e[0]]] = e[1]
		next[e[0]]++
	}
	return a
}

// reverse returns the adjacency with every edge reversed: from the children of all nodes it computes their parents. It
// first counts the neighbours and then stores them, so that no slice has to grow; the neighbours of a node are in
// ascending order.
func (a adjacency) reverse() adjacency {
	n := len(a.start) - 1
	r := adjacency{start: make([]int, n+1), flat: make([]int, len(a.flat))}
	for _, j := range a.flat {
		r.start[j+1]++
	}
	accumulate(r.start)
	next := slices.Clone(r.start)
	for i := range n {
		for _, j := range a.of(i) {
			r.flat[next[j]] = i
			next[j]++
		}
	}
	return r
}

func accumulate(counts []int) {
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
}

// sort sets levels, sizes and order, and returns nil. If the edges form a cycle, it returns, for each node, the number
// of parents that could not be ordered.
func (g *Graph) sort() (rest []int) {
	n := g.Len()
	g.levels = make([]int, n)
	missing := make([]int, n)
	queue := make([]int, 0, n)
	for i := range n {
		if missing[i] = len(g.Parents(i)); missing[i] == 0 {
			queue = append(queue, i)
		}
	}
	for head := 0; head < len(queue); head++ {
		i := queue[head]
		for _, c := range g.Children(i) {
			g.levels[c] = max(g.levels[c], g.levels[i]+1)
			if missing[c]--; missing[c] == 0 {
				queue = append(queue, c)
			}
		}
	}
	if len(queue) < n {
		return missing
	}
	g.orderByLevel()
	return nil
}

// orderByLevel sorts the nodes by their known levels, and within a level by their numbers, with a counting sort in
// linear time. It records the size of each level.
func (g *Graph) orderByLevel() {
	depth := 0
	for _, l := range g.levels {
		depth = max(depth, l+1)
	}
	next := make([]int, depth+1)
	for _, l := range g.levels {
		next[l+1]++
	}
	g.sizes = slices.Clone(next[1:])
	accumulate(next)
	g.order = make([]int, g.Len())
	for i, l := range g.levels {
		g.order[next[l]] = i
		next[l]++
	}
}

// cycleAmong returns a cycle among the nodes with unordered parents: each of these nodes has a parent that also has
// unordered parents, so a path along such parents must return to a node that it has already visited.
func (g *Graph) cycleAmong(missing []int) []int {
	stuck := func(i int) bool { return missing[i] > 0 }
	at := slices.IndexFunc(missing, func(m int) bool { return m > 0 })
	seen := make(map[int]int) // :: node → its index in path
	var path []int
	for {
		if from, ok := seen[at]; ok {
			path = path[from:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		up := g.Parents(at)
		at = up[slices.IndexFunc(up, stuck)]
	}
	slices.Reverse(path)
	first := slices.Index(path, slices.Min(path))
	return slices.Concat(path[first:], path[:first])
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.parents.start) - 1 }

// Grow adds n nodes without edges. Only the owner of a graph may call Grow, because the change is visible to all users
// of the graph.
func (g *Graph) Grow(n int) {
	for range n {
		g.order = append(g.order, g.Len())
		g.levels = append(g.levels, 0)
		g.parents.start = append(g.parents.start, len(g.parents.flat))
		g.children.start = append(g.children.start, len(g.children.flat))
	}
	if len(g.sizes) == 0 {
		g.sizes = []int{0}
	}
	g.sizes[0] += n
}

// Edges returns the number of distinct edges.
func (g *Graph) Edges() int { return len(g.parents.flat) }

// Parents returns the parents of node i, ascending.
func (g *Graph) Parents(i int) []int { return g.parents.of(i) }

// Children returns the children of node i, ascending.
func (g *Graph) Children(i int) []int { return g.children.of(i) }

// Levels returns the level of each node.
func (g *Graph) Levels() []int { return g.levels }

// LevelSizes returns the number of nodes in each level; its length is the number of levels.
func (g *Graph) LevelSizes() []int { return g.sizes }

// Width returns the size of the largest level, or 0 for the empty graph.
func (g *Graph) Width() int { return slices.Max(append([]int{0}, g.sizes...)) }

// Order returns all nodes, parents before children: they are sorted by level, then by number.
func (g *Graph) Order() []int { return g.order }
