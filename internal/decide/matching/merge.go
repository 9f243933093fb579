package matching

import (
	"math/bits"
	"slices"
	"time"
)

// MostClasses limits the number of classes in which jobs are counted, except for classes that cannot be merged.
const MostClasses = 256

// Merge returns at most about MostClasses classes of the same jobs, each at the position of its first class. If there
// are more, it merges classes whose needs are within a factor of 2 of each other, or of 4, 16 and so on until they are
// few enough; a merged class has the largest of their needs. Classes that need none of a resource are not merged with
// classes that need some, nor are classes with different takers, where takers names the hosts that can take a class. A
// host that can take each of two jobs on its own can also take a job with the larger of their needs, so a merged class
// fits the same hosts as each of its jobs.
func Merge(all []Class, takers func(Resources) string) []Class {
	all = slices.Clone(all)
	for octaves := 1; len(all) > MostClasses && octaves <= bits.UintSize; octaves *= 2 {
		all = merged(all, octaves, takers)
	}
	return all
}

// A kind holds the properties that are common to classes that are merged.
type kind struct {
	needs  [5]int // rounded
	takers string
}

// merged merges classes whose needs are in the same steps of the ladder and which the same workers can take. The
// resulting class has the largest needs, so that a worker that can take the class can take every job in it.
func merged(all []Class, octaves int, takers func(Resources) string) []Class {
	var few []Class
	index := map[kind]int{} // :: kind → index in few
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

// coarse rounds each component to a ladder whose steps are the given number of octaves apart; 0 represents none.
func (r Resources) coarse(octaves int) (key [5]int) {
	for i, n := range [5]int{r.CPUs, r.MemoryMiB, r.GPUs, r.DiskMiB, int(r.Time / time.Millisecond)} {
		if n > 0 {
			key[i] = 1 + (bits.Len(uint(n))-1)/octaves
		}
	}
	return key
}
