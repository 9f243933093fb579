package dag

import (
	"cmp"
	"math/bits"
	"slices"
)

// A Reach is the answer to the question whether a path leads from one node to another.
type Reach int8

const (
	Unknown Reach = iota // the answer was not found within the allowed steps
	Apart                // no path exists
	Reached              // a path exists
)

// Reaches determines for each pair {from, to} whether a path leads from the first node to the second. A node reaches
// itself. Reaches handles 64 sources at a time, which are neighbours in the order of the graph, as bits that are
// propagated along the edges up to the last target: the work is small if the nodes of the pairs are close to each
// other, and at most proportional to the number of edges for every 64 different sources. Reaches stops shortly after
// the given number of steps, where a step is a visit to a node or an edge; the remaining pairs are Unknown.
func (g *Graph) Reaches(pairs [][2]int, steps int) []Reach {
	found := make([]Reach, len(pairs))
	var open []int // indices of pairs
	for k, p := range pairs {
		switch {
		case p[0] == p[1]:
			found[k] = Reached
		case g.levels[p[0]] >= g.levels[p[1]]:
			found[k] = Apart
		default:
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return found
	}
	w := g.newWalk()
	slices.SortFunc(open, func(a, b int) int { return cmp.Compare(w.place[pairs[a][0]], w.place[pairs[b][0]]) })
	for len(open) > 0 && steps > 0 {
		some := w.begin(pairs, open)
		open = open[len(some):]
		steps -= w.spread()
		for _, k := range some {
			found[k] = Apart
			if w.reached[pairs[k][1]]>>w.bit[pairs[k][0]]&1 == 1 {
				found[k] = Reached
			}
		}
		w.end()
	}
	return found
}

// A walk is the state of propagating sources through a part of the order of a graph.
type walk struct {
	g        *Graph
	place    []int        // :: node → its index in the order
	reached  []uint       // :: node → the sources that reach it
	bit      map[int]uint // :: source → number of its bit
	from, to int          // bounds of the part: indices of the first source and the last target
}

func (g *Graph) newWalk() *walk {
	w := &walk{g: g, place: make([]int, g.Len()), reached: make([]uint, g.Len()), bit: make(map[int]uint)}
	for at, i := range g.order {
		w.place[i] = at
	}
	return w
}

// begin prepares a walk for pairs from the front of open, which is sorted by source, up to as many sources as a word
// has bits. It returns these pairs.
func (w *walk) begin(pairs [][2]int, open []int) []int {
	w.from, w.to = w.place[pairs[open[0]][0]], 0
	for n, k := range open {
		from, to := pairs[k][0], pairs[k][1]
		if _, ok := w.bit[from]; !ok {
			if len(w.bit) == bits.UintSize {
				return open[:n]
			}
			b := uint(len(w.bit))
			w.bit[from] = b
			w.reached[from] = 1 << b
		}
		w.to = max(w.to, w.place[to])
	}
	return open
}

// spread propagates the sources, and returns the number of steps.
func (w *walk) spread() (steps int) {
	for _, i := range w.g.order[w.from : w.to+1] {
		for _, p := range w.g.Parents(i) {
			w.reached[i] |= w.reached[p]
		}
		steps += 1 + len(w.g.Parents(i))
	}
	return steps
}

func (w *walk) end() {
	for _, i := range w.g.order[w.from : w.to+1] {
		w.reached[i] = 0
	}
	clear(w.bit)
}
