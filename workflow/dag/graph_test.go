package dag_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/workflow/dag"
)

// diamond returns 0 -> {1, 2} -> 3, and 4 alone.
func diamond(t testing.TB) *dag.Graph {
	t.Helper()
	return newGraph(t, 5, [][2]int{{2, 3}, {0, 1}, {0, 2}, {1, 3}, {0, 1}})
}

func newGraph(t testing.TB, n int, edges [][2]int) *dag.Graph {
	t.Helper()
	g, err := dag.New(n, edges)
	if err != nil {
		t.Fatalf("New(%d, %v): %v", n, edges, err)
	}
	return g
}

func TestNewSortsAndMergesEdges(t *testing.T) {
	t.Parallel()
	g := diamond(t)
	if g.Len() != 5 || g.Edges() != 4 || g.Width() != 2 {
		t.Errorf("Len, Edges, Width = %d, %d, %d, want 5, 4, 2", g.Len(), g.Edges(), g.Width())
	}
	for _, c := range []struct {
		name      string
		got, want []int
	}{
		{"Children(0)", g.Children(0), []int{1, 2}},
		{"Parents(3)", g.Parents(3), []int{1, 2}},
		{"Parents(4)", g.Parents(4), []int{}},
		{"Levels", g.Levels(), []int{0, 1, 1, 2, 0}},
		{"LevelSizes", g.LevelSizes(), []int{2, 2, 1}},
		{"Order", g.Order(), []int{0, 4, 1, 2, 3}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	t.Parallel()
	g := newGraph(t, 0, nil)
	if g.Len() != 0 || g.Width() != 0 || len(g.Order()) != 0 || len(g.LevelSizes()) != 0 {
		t.Errorf("empty graph: Len %d, Width %d, Order %v", g.Len(), g.Width(), g.Order())
	}
	if groups := dag.ByLevel(g, 3, nil); len(groups) != 0 {
		t.Errorf("ByLevel = %v, want none", groups)
	}
	if d, ok := dag.ListSchedule(g, nil, nil, 1); d != 0 || !ok {
		t.Errorf("ListSchedule = %v, %v, want 0, true", d, ok)
	}
}

func TestNewRefusesNodesThatDoNotExist(t *testing.T) {
	t.Parallel()
	for _, edge := range [][2]int{{0, 2}, {-1, 0}, {2, 1}} {
		if _, err := dag.New(2, [][2]int{edge}); err == nil {
			t.Errorf("New(2, %v): no error", edge)
		}
	}
}

func TestNewReportsTheCycle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		edges [][2]int
		want  string
	}{
		{[][2]int{{1, 1}}, "cycle: 1 -> 1"},
		{[][2]int{{0, 1}, {1, 0}}, "cycle: 0 -> 1 -> 0"},
		{[][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}}, "cycle: 1 -> 2 -> 3 -> 1"},
	} {
		_, err := dag.New(5, c.edges)
		var cycle *dag.CycleError
		if !errors.As(err, &cycle) {
			t.Errorf("New(%v) = %v, want a CycleError", c.edges, err)
		} else if err.Error() != c.want {
			t.Errorf("New(%v) = %q, want %q", c.edges, err, c.want)
		}
	}
}

// edges generates arbitrary edges among n nodes; acyclic edges lead only from lower to higher shuffled numbers.
func edges(t *rapid.T, n int, acyclic bool) [][2]int {
	if n == 0 {
		return nil
	}
	name := rapid.Permutation(seq(n)).Draw(t, "names")
	node := rapid.IntRange(0, n-1)
	var list [][2]int
	for range rapid.IntRange(0, 4*n).Draw(t, "edges") {
		a, b := node.Draw(t, "a"), node.Draw(t, "b")
		if acyclic && a == b {
			continue
		}
		if acyclic && a > b {
			a, b = b, a
		}
		list = append(list, [2]int{name[a], name[b]})
	}
	return list
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func drawGraph(t *rapid.T) *dag.Graph {
	n := rapid.IntRange(0, 30).Draw(t, "nodes")
	list := edges(t, n, true)
	g, err := dag.New(n, list)
	if err != nil {
		t.Fatalf("New(%d, %v): %v", n, list, err)
	}
	return g
}

func drawCosts(t *rapid.T, n int) []time.Duration {
	cost := make([]time.Duration, n)
	for i := range cost {
		cost[i] = time.Duration(rapid.IntRange(0, 20).Draw(t, "cost")) * time.Second
	}
	return cost
}

// Any edges yield either a graph in which every edge leads forward, or a cycle of these edges.
func TestNewOrdersOrFindsARealCycle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		list := edges(t, n, false)
		g, err := dag.New(n, list)
		var cycle *dag.CycleError
		if errors.As(err, &cycle) {
			for k, i := range cycle.Cycle {
				next := cycle.Cycle[(k+1)%len(cycle.Cycle)]
				if !slices.Contains(list, [2]int{i, next}) {
					t.Fatalf("%v: %d -> %d is not an edge", err, i, next)
				}
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, g, list)
	})
}

func checkOrder(t *rapid.T, g *dag.Graph, list [][2]int) {
	place := make([]int, g.Len())
	for k, i := range g.Order() {
		place[i] = k
	}
	sorted := slices.Sorted(slices.Values(g.Order()))
	if !slices.Equal(sorted, seq(g.Len())) {
		t.Fatalf("Order() = %v is not a permutation", g.Order())
	}
	for _, e := range list {
		if place[e[0]] >= place[e[1]] || g.Levels()[e[0]] >= g.Levels()[e[1]] {
			t.Fatalf("edge %v leads backward in %v, levels %v", e, g.Order(), g.Levels())
		}
		if !slices.Contains(g.Children(e[0]), e[1]) || !slices.Contains(g.Parents(e[1]), e[0]) {
			t.Fatalf("edge %v is lost", e)
		}
	}
	distinct := make(map[[2]int]bool)
	for _, e := range list {
		distinct[e] = true
	}
	if g.Edges() != len(distinct) {
		t.Fatalf("Edges() = %d, want %d", g.Edges(), len(distinct))
	}
}

func TestReachesAgreesWithSearch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		var pairs [][2]int
		for i := range g.Len() {
			for j := range g.Len() {
				pairs = append(pairs, [2]int{i, j})
			}
		}
		steps := rapid.SampledFrom([]int{0, 1, 20, math.MaxInt}).Draw(t, "steps")
		for k, got := range g.Reaches(pairs, steps) {
			want := dag.Apart
			if searchPath(g, pairs[k][0], pairs[k][1]) {
				want = dag.Reached
			}
			if got != want && (got != dag.Unknown || steps == math.MaxInt) {
				t.Fatalf("Reaches(%v) = %v, want %v", pairs[k], got, want)
			}
		}
	})
}

// The number of sources exceeds the number of bits of a word, so that several batches are needed.
func TestReachesInALongChain(t *testing.T) {
	t.Parallel()
	const n = 200
	var list, pairs [][2]int
	for i := 1; i < n; i++ {
		list = append(list, [2]int{i - 1, i})
		pairs = append(pairs, [2]int{i - 1, n - 1}, [2]int{i, i - 1})
	}
	for k, got := range newGraph(t, n, list).Reaches(pairs, math.MaxInt) {
		if want := pairs[k][0] < pairs[k][1]; (got == dag.Reached) != want || got == dag.Unknown {
			t.Errorf("Reaches(%v) = %v, want %v", pairs[k], got, want)
		}
	}
}

// Querying a pair of close nodes for each node takes about as many steps as there are nodes and edges.
func TestReachesLooksNearby(t *testing.T) {
	t.Parallel()
	const chains, length = 20, 1000
	var list, pairs [][2]int
	for i := range chains * length {
		if i%length > 0 {
			list = append(list, [2]int{i - 1, i})
		}
		if i%length > 1 {
			pairs = append(pairs, [2]int{i - 2, i})
		}
	}
	for k, got := range newGraph(t, chains*length, list).Reaches(pairs, 5*chains*length) {
		if got != dag.Reached {
			t.Fatalf("Reaches(%v) = %v", pairs[k], got)
		}
	}
}

func searchPath(g *dag.Graph, from, to int) bool {
	return from == to || slices.ContainsFunc(g.Children(from), func(c int) bool { return searchPath(g, c, to) })
}
