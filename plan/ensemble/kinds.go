package ensemble

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/corral-pilot/corral/plan"
)

// A Kind is the distribution of the sizes and priorities of an ensemble's workflows (Juve 2012, section 6.4).
type Kind string

// The five kinds. In the sorted kinds the largest workflow has the highest priority; in the other kinds priorities are
// random.
const (
	Constant        Kind = "constant" // all workflows have the same size
	ParetoSorted    Kind = "pareto-sorted"
	ParetoUnsorted  Kind = "pareto-unsorted" // most are small, a few have the maximum size
	UniformSorted   Kind = "uniform-sorted"
	UniformUnsorted Kind = "uniform-unsorted"
)

// Kinds lists all kinds in the order of the thesis.
var Kinds = []Kind{Constant, ParetoSorted, ParetoUnsorted, UniformSorted, UniformUnsorted}

// Sizes lists the numbers of tasks in the thesis's workflows.
var Sizes = []int{50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}

// Of generates an ensemble of n workflows. take returns a workflow of the given size; instance selects one of many
// workflows of that size. The Pareto kinds use consecutive instances, and the other kinds use random ones.
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

// pareto draws from the Pareto distribution with shape 1 and scale 50, and rounds down to one of Sizes, at most the
// largest.
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
