package clustering_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

func graph(tb interface{ Fatal(...any) }, n int, edges ...[2]int) *dag.Graph {
	g, err := dag.New(n, edges)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// tasks returns n tasks with one cpu and the given runtime.
func tasks(n int, takes time.Duration) []clustering.Unit {
	return slices.Repeat([]clustering.Unit{{Needs: corral.Resources{CPUs: 1}, Estimate: takes}}, n)
}

// A rule groups tasks with similar needs, and a job needs the maximum of its tasks' needs.
func TestJobs(t *testing.T) {
	t.Parallel()
	g := graph(t, 6, [2]int{0, 5})
	some := tasks(6, time.Minute)
	for i, memory := range []int{0, 200, 255, 1000, 1020, 3000} {
		some[i].Needs.MemoryMiB = memory
	}
	some[4].Needs.GPUs = 1
	some[1].Label, some[3].Label, some[4].Label = "x", "x", "x"
	for _, tt := range []struct {
		rule string
		want [][]int
	}{
		{"none", nil},
		{"auto", nil},
		{"horizontal=1", [][]int{{0, 1, 2}, {3}, {4}, {5}}},
		{"runtime=2m", [][]int{{0}, {1, 2}, {3}, {4}, {5}}},
		{"vertical", [][]int{{0, 5}, {1}, {2}, {3}, {4}}},
		{"label", [][]int{{0}, {1, 3, 4}, {2}, {5}}},
	} {
		rule, err := clustering.Parse(tt.rule)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, clustering.Jobs(g, some, rule)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.rule, diff)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	var chains [][2]int
	for i := range 40 {
		if i%10 > 0 {
			chains = append(chains, [2]int{i - 1, i})
		}
	}
	wide, deep := graph(t, 1000), graph(t, 40, chains...)
	for _, tt := range []struct {
		name   string
		g      *dag.Graph
		tasks  []clustering.Unit
		supply clustering.Supply
		want   string
		why    string
	}{
		{"long tasks", wide, tasks(1000, time.Hour), clustering.Supply{CPUs: 4, Way: 2 * time.Second}, "none", "small compared with the tasks"},
		{"no way at all", wide, tasks(1000, time.Second), clustering.Supply{CPUs: 4}, "none", "small compared with the tasks"},
		{"short tasks", wide, tasks(1000, time.Second), clustering.Supply{CPUs: 4, Way: 2 * time.Second}, "horizontal=4",
			"4m12s on 4 cpus instead of 12m30s"},
		{"as many cpus as tasks", wide, tasks(1000, time.Second), clustering.Supply{CPUs: 1000, Way: 2 * time.Second}, "none",
			"no other rule would be faster on 1000 cpus"},
		{"chains", deep, tasks(40, time.Second), clustering.Supply{CPUs: 4, Way: 2 * time.Second}, "vertical", "12s on 4 cpus"},
		{"few starts a second", wide, tasks(1000, time.Second), clustering.Supply{CPUs: 1000, Way: 2 * time.Second, Rate: 10},
			"horizontal=128", "instead of 1m40s"},
		{"workers that leave soon", wide, tasks(1000, time.Second), clustering.Supply{CPUs: 4, Way: 2 * time.Second,
			Left: 10 * time.Second}, "horizontal=128", ""},
		{"cpus that are not known", wide, tasks(1000, time.Second), clustering.Supply{Way: 2 * time.Second}, "runtime=1m40s",
			"the number of cpus is not known"},
		{"nor for long", wide, tasks(1000, time.Second), clustering.Supply{Way: 2 * time.Second, Left: time.Minute}, "runtime=1m0s",
			"the number of cpus is not known"},
	} {
		rule, why := clustering.Choose(tt.g, tt.tasks, tt.supply)
		if rule.String() != tt.want || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %s, because %s; want %s, because %s", tt.name, rule, why, tt.want, tt.why)
		}
	}
}

// The predicted makespan of the choice never exceeds the makespan without clustering, and jobs fit into the time that
// workers have left.
func TestChoiceHelps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "tasks")
		all := tasks(n, 0)
		var edges [][2]int
		for i := range all {
			all[i].Estimate = time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond
			all[i].Needs.CPUs = rapid.IntRange(1, 3).Draw(t, "cpus")
			all[i].Label = fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "label"))
			for p := range i {
				if rapid.IntRange(0, 5).Draw(t, "edge") == 0 {
					edges = append(edges, [2]int{p, i})
				}
			}
		}
		g := graph(t, n, edges...)
		s := clustering.Supply{CPUs: rapid.IntRange(1, 8).Draw(t, "supply"), Rate: float64(rapid.IntRange(0, 5).Draw(t, "rate")),
			Way:  time.Duration(rapid.IntRange(0, 5000).Draw(t, "way")) * time.Millisecond,
			Left: time.Duration(rapid.IntRange(0, 10).Draw(t, "left")) * time.Second}
		rule, _ := clustering.Choose(g, all, s)
		took, ok := clustering.Predict(g, all, rule, s)
		alone, _ := clustering.Predict(g, all, clustering.Rule{}, s)
		if !ok || took > alone {
			t.Fatalf("%s takes %s (fits: %t), and none %s", rule, took, ok, alone)
		}
		for _, job := range clustering.Jobs(g, all, rule) {
			var sum time.Duration
			for _, i := range job {
				sum += all[i].Estimate
			}
			if s.Left > 0 && len(job) > 1 && sum > s.Left {
				t.Fatalf("%s makes a job of %s, and workers stay for %s", rule, sum, s.Left)
			}
		}
	})
}
