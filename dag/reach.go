package dag

import "math/bits"

// Reaches reports for each pair {from, to} whether a path leads from the one to the other. A node
// reaches itself. It looks at 64 sources at a time, each a bit that travels down the edges, so the
// work is linear in the edges for every 64 different sources.
func (g *Graph) Reaches(pairs [][2]int) []bool {
	bySource := make(map[int][]int) // :: source → the pairs that ask for it
	var sources []int
	for k, p := range pairs {
		if bySource[p[0]] == nil {
			sources = append(sources, p[0])
		}
		bySource[p[0]] = append(bySource[p[0]], k)
	}
	found := make([]bool, len(pairs))
	for len(sources) > 0 {
		batch := sources[:min(bits.UintSize, len(sources))]
		sources = sources[len(batch):]
		reached := g.spread(batch)
		for b, s := range batch {
			for _, k := range bySource[s] {
				found[k] = reached[pairs[k][1]]>>b&1 == 1
			}
		}
	}
	return found
}

// spread returns for each node the set of sources that reach it: bit b for sources[b].
func (g *Graph) spread(sources []int) []uint {
	reached := make([]uint, g.Len())
	for b, s := range sources {
		reached[s] |= 1 << b
	}
	for _, i := range g.order {
		for _, p := range g.Parents(i) {
			reached[i] |= reached[p]
		}
	}
	return reached
}
