package matching

import (
	"math/bits"
	"time"
)

// MostClasses is in how many classes a queue is told at most, however much its jobs differ.
const MostClasses = 256

// Merge returns at most MostClasses classes of the same jobs, each in the place of its first. If there are more, those
// are counted together whose needs are within a factor of 2 of each other, or of 4, 16 and so on until they are few
// enough, with the most that any of them needs. What needs none of something stays apart from what needs some.
func Merge(all []Class) []Class {
	for octaves := 1; len(all) > MostClasses; octaves *= 2 {
		all = merged(all, octaves)
	}
	return all
}

func merged(all []Class, octaves int) []Class {
	var few []Class
	index := map[[5]int]int{} // :: coarse needs → place in few
	for _, c := range all {
		key := c.Needs.coarse(octaves)
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
