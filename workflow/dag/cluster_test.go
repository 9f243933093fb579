package dag_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/workflow/dag"
)

func TestByRuntime(t *testing.T) {
	t.Parallel()
	// One node with seven children, the last of which has a child.
	g := newGraph(t, 9, [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}, {7, 8}})
	costs := seconds(9, 6, 1, 2, 3, 3, 2, 20, 0)
	for _, c := range []struct {
		name   string
		target time.Duration
		kind   []int
		want   [][]int
	}{
		{"a node longer than that is alone", 6 * time.Second, nil, [][]int{{0}, {1}, {2, 4, 6}, {3, 5}, {7}, {8}}},
		{"of nearly the same time", 9 * time.Second, nil, [][]int{{0}, {1, 2, 6}, {3, 4, 5}, {7}, {8}}},
		{"all of a level", time.Minute, nil, [][]int{{0}, {1, 2, 3, 4, 5, 6, 7}, {8}}},
		{"by kind", time.Minute, []int{0, 1, 1, 2, 2, 1, 2, 1, 0}, [][]int{{0}, {1, 2, 5, 7}, {3, 4, 6}, {8}}},
		{"shorter than any", time.Millisecond, nil, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}},
	} {
		if diff := cmp.Diff(c.want, dag.ByRuntime(g, costs, c.target, c.kind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	// 0 → {1 → 2 → 3, 4 → 5} → 6 → 7
	g := newGraph(t, 8, [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 4}, {4, 5}, {3, 6}, {5, 6}, {6, 7}})
	if diff := cmp.Diff([][]int{{0}, {1, 2, 3}, {4, 5}, {6, 7}}, dag.Chains(g, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	kinds := []int{0, 0, 0, 1, 0, 0, 1, 1}
	if diff := cmp.Diff([][]int{{0}, {1, 2}, {4, 5}, {3}, {6, 7}}, dag.Chains(g, kinds)); diff != "" {
		t.Errorf("by kind (-want +got):\n%s", diff)
	}
}

func TestByLabel(t *testing.T) {
	t.Parallel()
	const none = -1
	for _, c := range []struct {
		name  string
		nodes int
		edges [][2]int
		label []int
		want  [][]int
	}{
		{"none", 3, [][2]int{{0, 1}}, []int{none, none, none}, [][]int{{0}, {2}, {1}}},
		{"independent nodes", 3, nil, []int{7, none, 7}, [][]int{{0, 2}, {1}}},
		{"a part of a graph", 5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {4, 2}}, []int{none, 1, 1, 1, 1},
			[][]int{{0}, {4, 1, 2, 3}}},
		{"through another node", 3, [][2]int{{0, 1}, {1, 2}}, []int{1, none, 1}, [][]int{{0}, {1}, {2}}},
		{"that waits for itself, and what does not", 5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {2, 4}}, []int{1, none, 1, 2, 2},
			[][]int{{0}, {1}, {2}, {3, 4}}},
		// 0 → 1 and 3 → 2: each label would wait for the other.
		{"two that wait for each other", 4, [][2]int{{0, 1}, {3, 2}}, []int{1, 2, 1, 2}, [][]int{{0}, {3}, {1}, {2}}},
		{"what is parted stays together otherwise", 6, [][2]int{{0, 2}, {1, 2}, {2, 3}, {2, 4}, {3, 5}, {4, 5}},
			[]int{1, 1, none, 1, 1, 1}, [][]int{{0, 1}, {2}, {3, 4, 5}}},
	} {
		if diff := cmp.Diff(c.want, dag.ByLabel(newGraph(t, c.nodes, c.edges), c.label)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// For any clustering, every node is in one group, parents come before children within a group, and no group waits for
// itself. Groups of a level have no internal dependencies; a chain waits only for the parents of its first node.
func TestClusteringsMakeNoCycles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		costs, kinds, labels := make([]time.Duration, g.Len()), make([]int, g.Len()), make([]int, g.Len())
		for i := range costs {
			costs[i] = time.Duration(rapid.IntRange(0, 9).Draw(t, "cost"))
			kinds[i] = rapid.IntRange(0, 1).Draw(t, "kind")
			labels[i] = rapid.IntRange(-1, 3).Draw(t, "label")
		}
		target := time.Duration(rapid.IntRange(1, 30).Draw(t, "target"))
		byRuntime := dag.ByRuntime(g, costs, target, kinds)
		checkGroups(t, g, byRuntime)
		for _, group := range byRuntime {
			sum := time.Duration(0)
			for _, i := range group {
				sum += costs[i]
				if g.Levels()[i] != g.Levels()[group[0]] || kinds[i] != kinds[group[0]] {
					t.Fatalf("group %v mixes levels or kinds", group)
				}
			}
			if len(group) > 1 && sum > target {
				t.Fatalf("group %v takes %d, more than %d", group, sum, target)
			}
		}
		chains := dag.Chains(g, kinds)
		checkGroups(t, g, chains)
		for _, chain := range chains {
			for k, i := range chain[1:] {
				if !slices.Equal(g.Parents(i), chain[k:k+1]) || len(g.Children(chain[k])) != 1 {
					t.Fatalf("%v is not a chain", chain)
				}
			}
		}
		byLabel := dag.ByLabel(g, labels)
		checkGroups(t, g, byLabel)
		for _, group := range byLabel {
			for _, i := range group[1:] {
				if labels[i] < 0 || labels[i] != labels[group[0]] {
					t.Fatalf("group %v has several labels", group)
				}
			}
		}
	})
}

// checkGroups checks that groups are a partition of the nodes, and can be run one after another.
func checkGroups(t *rapid.T, g *dag.Graph, groups [][]int) {
	var all []int
	of, place := make([]int, g.Len()), make([]int, g.Len())
	for k, group := range groups {
		all = append(all, group...)
		for n, i := range group {
			of[i], place[i] = k, n
		}
	}
	slices.Sort(all)
	if !slices.Equal(all, seq(g.Len())) {
		t.Fatalf("groups cover %v", all)
	}
	var edges [][2]int
	for i := range g.Len() {
		for _, c := range g.Children(i) {
			if of[i] != of[c] {
				edges = append(edges, [2]int{of[i], of[c]})
			} else if place[c] < place[i] {
				t.Fatalf("in group %v node %d comes before its parent %d", groups[of[i]], c, i)
			}
		}
	}
	if _, err := dag.New(len(groups), edges); err != nil {
		t.Fatalf("groups %v: %v", groups, err)
	}
}

// A label is split only if necessary: its nodes form a single group unless that group and another would wait for each
// other.
func TestLabelsAreKeptWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		labels := make([]int, g.Len())
		for i := range labels {
			labels[i] = rapid.IntRange(0, 3).Draw(t, "label")
		}
		var edges [][2]int
		for i := range g.Len() {
			for _, c := range g.Children(i) {
				if labels[i] != labels[c] {
					edges = append(edges, [2]int{labels[i], labels[c]})
				}
			}
		}
		if _, err := dag.New(4, edges); err != nil {
			return // some groups wait for each other
		}
		seen := map[int]bool{}
		for _, group := range dag.ByLabel(g, labels) {
			if seen[labels[group[0]]] {
				t.Fatalf("label %d is parted, and nothing demands it", labels[group[0]])
			}
			seen[labels[group[0]]] = true
		}
	})
}
