package plantest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/plantest"
)

// Workflows of all sizes have approximately the given number of tasks, the levels of their application, and as much
// work as the workflows of the generator: the mean runtime of their tasks is in the range of the generator's published
// instances with 100 to 1000 tasks, with a tolerance of 20 %.
func TestDraw(t *testing.T) {
	t.Parallel()
	for application, want := range map[string]struct {
		levels    []int
		low, high float64
	}{
		"montage":     {[]int{9}, 8.9, 12.5},
		"cybershake":  {[]int{4}, 18, 28},
		"ligo":        {[]int{6}, 170, 280},
		"epigenomics": {[]int{8, 9}, 2000, 4800},
		"sipht":       {[]int{5}, 120, 260},
	} {
		for _, size := range ensemble.Sizes[1:] {
			w, err := plantest.Draw(application, size, 7)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(w.Tasks); n > size || n < size-size/20-4 {
				t.Errorf("%s of %d tasks has %d", application, size, n)
			}
			if l := len(w.Graph.LevelSizes()); l != want.levels[0] && l != want.levels[len(want.levels)-1] {
				t.Errorf("%s of %d tasks has %d levels, want %d", application, size, l, want.levels)
			}
			if mean := ensemble.Runtime(w).Seconds() / float64(len(w.Tasks)); mean < want.low || mean > want.high {
				t.Errorf("%s of %d tasks: %.1f s in the mean, want %.1f to %.1f", application, size, mean, want.low, want.high)
			}
			again, _ := plantest.Draw(application, size, 7)
			other, _ := plantest.Draw(application, size, 8)
			if fmt.Sprint(again.Tasks) != fmt.Sprint(w.Tasks) || fmt.Sprint(other.Tasks) == fmt.Sprint(w.Tasks) {
				t.Errorf("%s of %d tasks does not follow from its seed", application, size)
			}
		}
	}
	for application, size := range map[string]int{"weather": 100, "ligo": 3} {
		if _, err := plantest.Draw(application, size, 1); corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s of %d tasks: %v", application, size, err)
		}
	}
}

// The kinds determine sizes and priorities: sizes descend in sorted kinds, all sizes are equal in the constant kind,
// and a Pareto distribution yields mostly the smallest size and about 10 % of the largest (figure 6.5: 57 and 9 of
// 100).
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range ensemble.Kinds {
		count := map[int]int{}
		sorted := true
		for seed := range uint64(20) {
			before := 1000
			kind.Of(50, rand.New(rand.NewPCG(seed, 0)), func(size, _ int) plan.Work {
				count[size]++
				return plan.Work{Tasks: []plan.Task{{Runtime: time.Duration(size)}}}
			})
			for _, w := range kind.Of(50, rand.New(rand.NewPCG(seed, 0)), func(size, _ int) plan.Work {
				return plan.Work{Tasks: []plan.Task{{Runtime: time.Duration(size)}}}
			}) {
				size := int(w.Tasks[0].Runtime)
				sorted = sorted && size <= before
				before = size
			}
		}
		if want := kind == ensemble.Constant || kind == ensemble.ParetoSorted || kind == ensemble.UniformSorted; sorted != want {
			t.Errorf("%s: sorted %v", kind, sorted)
		}
		small, large := float64(count[50])/1000, float64(count[1000])/1000
		if pareto := kind == ensemble.ParetoSorted || kind == ensemble.ParetoUnsorted; pareto &&
			(small < 0.45 || small > 0.60 || large < 0.03 || large > 0.12) {
			t.Errorf("%s: %.2f of the smallest, %.2f of the largest", kind, small, large)
		}
	}
}
