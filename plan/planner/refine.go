package planner

import "slices"

// fullFront is the number of points up to which the front is refined; refinements is the maximum number of passes, each
// of which at most doubles the points.
const (
	fullFront   = 8
	refinements = 3
)

// refine returns outcomes between neighbours of the front, until the front has fullFront points or no number of hosts
// is left between two that differ only in that number.
func refine(known []outcome) (found []outcome) {
	all := slices.Clone(known)
	for range refinements {
		points := frontier(all)
		if len(points) >= fullFront {
			break
		}
		between := map[*planning][]candidate{}
		for i := 1; i < len(points); i++ {
			a, b := &all[points[i-1]], &all[points[i]]
			if c, ok := a.candidate.halfway(b.candidate); ok && a.of == b.of && len(a.of.all) <= manySizes {
				between[a.of] = append(between[a.of], c)
			}
		}
		if len(between) == 0 {
			break
		}
		for _, k := range points {
			of := all[k].of
			fresh := of.outcomes(between[of])
			if of.ctx.Err() != nil {
				return nil // the outcomes are empty
			}
			delete(between, of)
			found, all = append(found, fresh...), append(all, fresh...)
		}
	}
	return found
}

// hosts returns the number of hosts of a candidate.
func (c candidate) hosts() (n int) {
	for _, s := range c {
		n += s.count
	}
	return n
}

// halfway returns the candidate whose number of hosts is between those of two candidates; ok is false if they differ in
// more than that, or if there is none between them.
func (c candidate) halfway(d candidate) (between candidate, ok bool) {
	few, many := min(c.hosts(), d.hosts()), max(c.hosts(), d.hosts())
	if d.hosts() == few {
		c, d = d, c
	}
	if many-few < 2 || !slices.Equal(c, take(d, few)) {
		return nil, false
	}
	return take(d, (few+many)/2), true
}
