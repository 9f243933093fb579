package ensemble

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/corral-pilot/corral/plan"
)

// A Kind is how the sizes of an ensemble's workflows are distributed, and with them priorities (Juve 2012, section
// 6.4).
type Kind string

// The five kinds. Of sorted ones the largest workflow has the highest priority, of others priorities are random.
const (
	Constant        Kind = "constant" // one size
	ParetoSorted    Kind = "pareto-sorted"
	ParetoUnsorted  Kind = "pareto-unsorted" // most are small, and a few as large as there are
	UniformSorted   Kind = "uniform-sorted"
	UniformUnsorted Kind = "uniform-unsorted"
)

// Kinds are all of them, as the thesis lists them.
var Kinds = []Kind{Constant, ParetoSorted, ParetoUnsorted, UniformSorted, UniformUnsorted}

// Sizes are those of the thesis's workflows, in tasks.
var Sizes = []int{50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}

// Of draws an ensemble of n workflows of a kind. take returns a workflow of some size: the nth of its ensemble, which
// is one of many instances that are taken in turn where sizes are of a Pareto distribution, and any one else.
func (k Kind) Of(n int, rng *rand.Rand, take func(size, instance int) plan.Work) Ensemble {
	sizes := make([]int, n)
	one := Sizes[rng.IntN(len(Sizes))]
	for i := range sizes {
		switch k {
		case Constant:
			sizes[i] = one
		case ParetoSorted, ParetoUnsorted:
			sizes[i] = pareto(rng)
		default:
			sizes[i] = Sizes[rng.IntN(len(Sizes))]
		}
	}
	slices.SortStableFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
	e := make(Ensemble, n)
	for i, size := range sizes {
		instance := i
		if k != ParetoSorted && k != ParetoUnsorted {
			instance = rng.IntN(1 << 20)
		}
		e[i] = take(size, instance)
	}
	if k == ParetoUnsorted || k == UniformUnsorted {
		rng.Shuffle(n, func(i, j int) { e[i], e[j] = e[j], e[i] })
	}
	return e
}

// pareto draws a size from the Pareto distribution of shape 1 and scale 50, rounded down to one of Sizes; what is
// larger than all of them is the largest.
func pareto(rng *rand.Rand) int {
	x := 50 / (1 - rng.Float64())
	switch {
	case x < 100:
		return 50
	case x > 1000:
		return 1000
	}
	return int(x/100) * 100
}
