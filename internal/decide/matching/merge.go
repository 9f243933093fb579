package matching

import (
	"math/bits"
	"slices"
	"time"
)

// MostClasses is in how many classes jobs are counted, however much they differ, but for those that no merging joins.
const MostClasses = 256

// Merge returns about MostClasses classes of the same jobs at most, each in the place of its first. If there are more,
// those are counted together whose needs are within a factor of 2 of each other, or of 4, 16 and so on until they are
// few enough, with the most that any of them needs. What needs none of something stays apart from what needs some, and
// so do needs of which takers, which names the hosts that take them, says different things: a host that takes two jobs,
// one at a time, takes one that needs the most of each, so that merged classes find what each of their jobs finds.
func Merge(all []Class, takers func(Resources) string) []Class {
	all = slices.Clone(all)
	for octaves := 1; len(all) > MostClasses && octaves <= bits.UintSize; octaves *= 2 {
		all = merged(all, octaves, takers)
	}
	return all
}

// A kind is what classes have in common that are merged.
type kind struct {
	needs  [5]int // coarse
	takers string
}

// merged puts classes together whose needs are alike on the ladder and that the same workers take. The class that
// comes of it needs the most of each, so that whoever takes it takes all that are in it.
func merged(all []Class, octaves int, takers func(Resources) string) []Class {
	var few []Class
	index := map[kind]int{} // :: kind → place in few
	for _, c := range all {
		key := kind{c.Needs.coarse(octaves), takers(c.Needs)}
		i, known := index[key]
		if !known {
			index[key] = len(few)
			few = append(few, c)
			continue
		}
		f := &few[i]
		f.Jobs += c.Jobs
		f.Needs = Resources{f.Needs.Most(c.Needs.Resources), max(f.Needs.Time, c.Needs.Time)}
	}
	return few
}

// coarse is each component on a ladder whose steps are so many octaves apart; 0 is none.
func (r Resources) coarse(octaves int) (key [5]int) {
	for i, n := range [5]int{r.CPUs, r.MemoryMiB, r.GPUs, r.DiskMiB, int(r.Time / time.Millisecond)} {
		if n > 0 {
			key[i] = 1 + (bits.Len(uint(n))-1)/octaves
		}
	}
	return key
}
