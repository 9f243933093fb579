package dag

import (
	"cmp"
	"math/bits"
	"slices"
)

// A Reach says whether a path leads from one node to another.
type Reach int8

// Unknown is what was not found out within the steps that were allowed.
const (
	Unknown Reach = iota
	Apart
	Reached
)

// Reaches finds out for each pair {from, to} whether a path leads from the one to the other. A node
// reaches itself. It looks at 64 sources at a time, neighbours in the order of the graph, each a bit that travels down
// the edges as far as the last node that is asked about: the work is small where pairs are near each other, and can be
// the edges' number for every 64 different sources. It ends after some more than the given steps, each a look at a node
// or an edge, with the rest Unknown.
func (g *Graph) Reaches(pairs [][2]int, steps int) []Reach {
	found := make([]Reach, len(pairs))
	var open []int // which of pairs
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

// A walk goes through a part of the order of a graph.
type walk struct {
	g        *Graph
	place    []int        // :: node → where in the order
	reached  []uint       // :: node → the sources that reach it
	bit      map[int]uint // :: source → which bit it is
	from, to int          // the part: places of the first source and of the last target
}

func (g *Graph) newWalk() *walk {
	w := &walk{g: g, place: make([]int, g.Len()), reached: make([]uint, g.Len()), bit: make(map[int]uint)}
	for at, i := range g.order {
		w.place[i] = at
	}
	return w
}

// begin takes the first of open, which are in the order of their sources, with as many sources as a word has bits.
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

// spread lets the sources travel, and returns how many steps that took.
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
