package dag_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/workflow/dag"
)

func TestFrontierReleasesChildren(t *testing.T) {
	t.Parallel()
	f := dag.NewFrontier(diamond(t))
	steps := []struct {
		name      string
		got, want []int
	}{
		{"Ready", f.Ready(), []int{0, 4}},
		{"Finish(0)", f.Finish(0), []int{1, 2}},
		{"Finish(0) again", f.Finish(0), nil},
		{"Finish(2)", f.Finish(2), nil},
		{"Finish(1)", f.Finish(1), []int{3}},
		{"Ready", f.Ready(), []int{3, 4}},
	}
	for _, s := range steps {
		if diff := cmp.Diff(s.want, s.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
	}
	if got, want := f.Counts(), (dag.Counts{Ready: 2, Done: 3}); got != want {
		t.Errorf("Counts = %+v, want %+v", got, want)
	}
	if f.Done() {
		t.Error("done with two nodes ready")
	}
}

func TestFrontierSkipsBelowAFailure(t *testing.T) {
	t.Parallel()
	f := dag.NewFrontier(diamond(t))
	f.Finish(0)
	if got := f.Fail(1); !slices.Equal(got, []int{3}) {
		t.Errorf("Fail(1) = %v, want [3]", got)
	}
	if got := f.Fail(2); got != nil {
		t.Errorf("Fail(2) = %v, want none: node 3 was skipped before", got)
	}
	if got := f.Finish(1); got != nil || f.State(1) != dag.Failed {
		t.Errorf("Finish after Fail = %v, state %v, want no change", got, f.State(1))
	}
	f.Finish(4)
	if got, want := f.Counts(), (dag.Counts{Done: 2, Failed: 2, Skipped: 1}); got != want || !f.Done() {
		t.Errorf("Counts = %+v, want %+v; Done = %v", got, want, f.Done())
	}
}

func TestFrontierPanicsOnAnEndBeforeRelease(t *testing.T) {
	t.Parallel()
	f := dag.NewFrontier(diamond(t))
	defer func() {
		if got := recover(); got != "dag: node 3 ended while waiting" {
			t.Errorf("recovered %v", got)
		}
	}()
	f.Finish(3)
}

// A waiting node may fail, be skipped, and be reopened; the progress of its parents in the meantime counts afterwards.
func TestFrontierTakesEndsBack(t *testing.T) {
	t.Parallel()
	f := dag.NewFrontier(diamond(t))
	if got := f.Fail(1); !slices.Equal(got, []int{3}) || !f.Drop(2) || f.Drop(3) {
		t.Fatalf("Fail(1) = %v, states %v, %v, %v", got, f.State(1), f.State(2), f.State(3))
	}
	if got := f.Finish(0); got != nil {
		t.Errorf("Finish(0) = %v, want none: both children are over", got)
	}
	f.Reopen(1)
	f.Reopen(2)
	f.Reopen(3)
	f.Reopen(4)
	if got, want := f.Counts(), (dag.Counts{Waiting: 1, Ready: 3, Done: 1}); got != want {
		t.Errorf("Counts = %+v, want %+v", got, want)
	}
	f.Reopen(0)
	if got, want := f.Counts(), (dag.Counts{Waiting: 3, Ready: 2}); got != want {
		t.Errorf("with the source reopened Counts = %+v, want %+v", got, want)
	}
	if got := f.Finish(0); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("Finish(0) again = %v, want [1 2]", got)
	}
}

// In any order of completion, with some failures, every node is released at most once, only after its parents, and each
// ends done, failed or skipped, the latter exactly for descendants of failed nodes.
func TestFrontierProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		f := dag.NewFrontier(g)
		pending := f.Ready()
		released := len(pending)
		var done, failed []int
		for len(pending) > 0 {
			k := rapid.IntRange(0, len(pending)-1).Draw(t, "next")
			i := pending[k]
			pending = slices.Delete(pending, k, k+1)
			if rapid.IntRange(0, 9).Draw(t, "luck") == 0 {
				f.Fail(i)
				failed = append(failed, i)
			} else {
				done = append(done, i)
				for _, c := range f.Finish(i) {
					checkParentsDone(t, g, f, c)
					pending = append(pending, c)
					released++
				}
			}
		}
		n := f.Counts()
		if !f.Done() || n.Skipped+released != g.Len() || n.Done != len(done) || n.Failed != len(failed) {
			t.Fatalf("at the end: %+v, %d released, %d done, %d failed", n, released, len(done), len(failed))
		}
		checkSkipped(t, g, f, failed)
	})
}

func checkParentsDone(t *rapid.T, g *dag.Graph, f *dag.Frontier, i int) {
	for _, p := range g.Parents(i) {
		if f.State(p) != dag.Done {
			t.Fatalf("node %d released while its parent %d is %v", i, p, f.State(p))
		}
	}
}

func checkSkipped(t *rapid.T, g *dag.Graph, f *dag.Frontier, failed []int) {
	for i := range g.Len() {
		below := slices.ContainsFunc(failed, func(x int) bool { return x != i && searchPath(g, x, i) })
		if below != (f.State(i) == dag.Skipped) {
			t.Fatalf("node %d is %v, below a failure: %v", i, f.State(i), below)
		}
	}
}

func TestByLevel(t *testing.T) {
	t.Parallel()
	g := newGraph(t, 9, [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}, {7, 8}})
	for _, c := range []struct {
		name string
		n    int
		kind []int
		want [][]int
	}{
		{"two groups", 2, nil, [][]int{{0}, {1, 2, 3}, {4, 5, 6, 7}, {8}}},
		{"more than nodes", 100, nil, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}},
		{"none counts as one", 0, nil, [][]int{{0}, {1, 2, 3, 4, 5, 6, 7}, {8}}},
		{"by kind", 3, []int{0, 8, 1, 1, 1, 1, 8, 1, 0}, [][]int{{0}, {1, 6}, {2, 3}, {4, 5, 7}, {8}}},
		{"more kinds than groups", 1, []int{0, 1, 1, 1, 2, 2, 3, 3, 0}, [][]int{{0}, {1, 2, 3}, {4, 5}, {6, 7}, {8}}},
	} {
		if diff := cmp.Diff(c.want, dag.ByLevel(g, c.n, c.kind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestByLevelProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		n := rapid.IntRange(1, 6).Draw(t, "n")
		kind := make([]int, g.Len())
		for i := range kind {
			kind[i] = rapid.IntRange(0, 2).Draw(t, "kind")
		}
		var all []int
		perLevel := make([]int, len(g.LevelSizes()))
		smallest, largest := map[[2]int]int{}, map[[2]int]int{}
		for _, group := range dag.ByLevel(g, n, kind) {
			key := [2]int{g.Levels()[group[0]], kind[group[0]]}
			for _, i := range group {
				if g.Levels()[i] != key[0] || kind[i] != key[1] {
					t.Fatalf("group %v mixes levels or kinds", group)
				}
			}
			if smallest[key] == 0 {
				smallest[key] = len(group)
			}
			smallest[key], largest[key] = min(smallest[key], len(group)), max(largest[key], len(group))
			perLevel[key[0]]++
			all = append(all, group...)
		}
		slices.Sort(all)
		if !slices.Equal(all, seq(g.Len())) {
			t.Fatalf("groups cover %v", all)
		}
		for key := range smallest {
			if largest[key]-smallest[key] > 1 {
				t.Fatalf("level and kind %v: groups of %d and %d", key, smallest[key], largest[key])
			}
		}
		for l, count := range perLevel {
			if size := g.LevelSizes()[l]; count < min(n, size) || count > max(min(n, size), 3) {
				t.Fatalf("level %d of %d nodes in %d groups, n = %d", l, size, count, n)
			}
		}
	})
}
