package dag_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/workflow/dag"
)

func seconds(s ...int) []time.Duration {
	d := make([]time.Duration, len(s))
	for i := range s {
		d[i] = time.Duration(s[i]) * time.Second
	}
	return d
}

func TestUpwardRanks(t *testing.T) {
	t.Parallel()
	g := diamond(t)
	cost := seconds(1, 2, 5, 1, 3)
	if diff := cmp.Diff(seconds(7, 3, 6, 1, 3), g.UpwardRanks(cost)); diff != "" {
		t.Errorf("UpwardRanks (-want +got):\n%s", diff)
	}
	if got := g.CriticalPath(cost); got != 7*time.Second {
		t.Errorf("CriticalPath = %v, want 7s", got)
	}
}

func TestRanksSaturate(t *testing.T) {
	t.Parallel()
	g := newGraph(t, 2, [][2]int{{0, 1}})
	cost := []time.Duration{math.MaxInt64, math.MaxInt64}
	if got := g.CriticalPath(cost); got != math.MaxInt64 {
		t.Errorf("CriticalPath = %v, want the longest Duration", got)
	}
	if got := dag.LowerBound(g, cost, []int{8, 8}, 8); got != math.MaxInt64 {
		t.Errorf("LowerBound = %v, want the longest Duration", got)
	}
}

func TestScheduleAndBound(t *testing.T) {
	t.Parallel()
	type row struct {
		name        string
		edges       [][2]int
		cost        []time.Duration
		need        []int
		cpus        int
		list, bound time.Duration
	}
	for _, c := range []row{
		{"one after another", nil, seconds(1, 2, 3), nil, 1, 6 * time.Second, 6 * time.Second},
		{"critical path", [][2]int{{0, 1}, {1, 2}}, seconds(1, 2, 3, 1), nil, 2, 6 * time.Second, 6 * time.Second},
		{"longest first", nil, seconds(2, 2, 4), nil, 2, 4 * time.Second, 4 * time.Second},
		{"wide node waits", nil, seconds(4, 4, 3), []int{1, 1, 2}, 2, 7 * time.Second, 7 * time.Second},
		{"narrow node goes beside", nil, seconds(5, 3, 1), []int{2, 2, 1}, 3, 8 * time.Second, 17 * time.Second / 3},
		{"many cpus", nil, seconds(5, 3, 1), nil, 100, 5 * time.Second, 5 * time.Second},
	} {
		g := newGraph(t, len(c.cost), c.edges)
		if got, ok := dag.ListSchedule(g, c.cost, c.need, c.cpus); got != c.list || !ok {
			t.Errorf("%s: ListSchedule = %v, %v, want %v", c.name, got, ok, c.list)
		}
		if got := dag.LowerBound(g, c.cost, c.need, c.cpus); got != c.bound {
			t.Errorf("%s: LowerBound = %v, want %v", c.name, got, c.bound)
		}
	}
}

func TestScheduleThatCannotBe(t *testing.T) {
	t.Parallel()
	g := newGraph(t, 2, nil)
	for _, c := range []struct {
		need []int
		cpus int
	}{{[]int{1, 3}, 2}, {[]int{0, 1}, 2}, {nil, 0}} {
		if d, ok := dag.ListSchedule(g, seconds(1, 1), c.need, c.cpus); ok {
			t.Errorf("ListSchedule(need %v, %d cpus) = %v, want not ok", c.need, c.cpus, d)
		}
	}
	if got := dag.LowerBound(g, seconds(1, 1), nil, 0); got != math.MaxInt64 {
		t.Errorf("LowerBound without cpus = %v, want the longest Duration", got)
	}
}

func TestScheduleProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		cost := drawCosts(t, g.Len())
		cpus := rapid.IntRange(1, 8).Draw(t, "cpus")
		need := make([]int, g.Len())
		var serial time.Duration
		for i := range need {
			need[i] = rapid.IntRange(1, cpus).Draw(t, "need")
			serial += cost[i]
		}
		rank := g.UpwardRanks(cost)
		for i := range g.Len() {
			for _, c := range g.Children(i) {
				if rank[i] < rank[c]+cost[i] {
					t.Fatalf("rank of %d is %v, of its child %d %v", i, rank[i], c, rank[c])
				}
			}
		}
		list, ok := dag.ListSchedule(g, cost, need, cpus)
		bound := dag.LowerBound(g, cost, need, cpus)
		if !ok || list < bound || list > serial {
			t.Fatalf("ListSchedule = %v, %v, want between %v and %v", list, ok, bound, serial)
		}
		narrow, _ := dag.ListSchedule(g, cost, nil, cpus)
		if least := dag.LowerBound(g, cost, nil, cpus); narrow > 2*least {
			t.Fatalf("one-cpu nodes: ListSchedule = %v, above Graham's 2 × %v", narrow, least)
		}
	})
}

// layered returns a graph of n nodes in layers of 1,000, with three parents each, and varied costs and needs.
func layered(t testing.TB, n int) (g *dag.Graph, cost []time.Duration, need []int) {
	var list [][2]int
	for i := range n {
		cost = append(cost, time.Duration(1+i*7919%600)*time.Second)
		need = append(need, 1+i%4)
		for k := range 3 {
			if p := i - 1000 - k; p >= 0 && i%1000 > 2 {
				list = append(list, [2]int{p, i})
			}
		}
	}
	return newGraph(t, n, list), cost, need
}

func TestHundredThousandNodesInTime(t *testing.T) {
	t.Parallel()
	g, cost, need := layered(t, 100_000)
	if got, ok := dag.ListSchedule(g, cost, need, 64); !ok || got < dag.LowerBound(g, cost, need, 64) {
		t.Errorf("ListSchedule = %v, %v", got, ok)
	}
}

func BenchmarkListSchedule100k(b *testing.B) {
	g, cost, need := layered(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		dag.ListSchedule(g, cost, need, 64)
	}
}

func BenchmarkNew100k(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		layered(b, 100_000)
	}
}
