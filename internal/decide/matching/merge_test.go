package matching_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

func TestFewClassesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	var all []matching.Class
	for i := range matching.MostClasses {
		all = append(all, matching.Class{Needs: matching.Resources{Resources: corral.Resources{CPUs: 1, MemoryMiB: i}}, Jobs: 1})
	}
	if got := matching.Merge(all, takers); !slices.Equal(got, all) {
		t.Errorf("%d classes, want the %d that there were", len(got), len(all))
	}
}

// Many classes are reduced to few. No job is lost, and no job is counted among jobs that need less, among jobs that
// need some of a resource of which it needs none, or among jobs that other hosts take.
func TestManyClassesAreMerged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<30)
		var all []matching.Class
		jobs, most := 0, matching.Resources{}
		for range rapid.IntRange(1, 2000).Draw(t, "classes") {
			c := matching.Class{Needs: matching.Resources{Resources: corral.Resources{CPUs: 1 + n.Draw(t, "cpus"),
				MemoryMiB: n.Draw(t, "memory"), GPUs: n.Draw(t, "gpus"), DiskMiB: n.Draw(t, "disk")},
				Time: time.Duration(n.Draw(t, "time")) * time.Millisecond}, Jobs: 1 + n.Draw(t, "jobs")}
			all, jobs = append(all, c), jobs+c.Jobs
			most = matching.Resources{Resources: most.Most(c.Needs.Resources), Time: max(most.Time, c.Needs.Time)}
		}
		got := matching.Merge(all, takers)
		if len(got) > matching.MostClasses {
			t.Fatalf("%d classes", len(got))
		}
		var after matching.Resources
		for _, c := range got {
			jobs -= c.Jobs
			after = matching.Resources{Resources: after.Most(c.Needs.Resources), Time: max(after.Time, c.Needs.Time)}
		}
		if jobs != 0 || after != most {
			t.Fatalf("%d jobs are lost; needs up to %+v, want %+v", jobs, after, most)
		}
		for _, c := range all {
			if !slices.ContainsFunc(got, func(g matching.Class) bool { return holds(g, c) }) {
				t.Fatalf("no class is for %+v", c)
			}
		}
	})
}

// Merged classes have needs within a factor of 2, 4, 16 and so on: from a power of that factor to just below the next
// one. Needs of any size are merged at last.
func TestSteps(t *testing.T) {
	t.Parallel()
	// oddThrees distinguishes classes with the same needs but for a factor of 3.
	oddThrees := func(needs matching.Resources) string {
		return fmt.Sprint(strings.Count(fmt.Sprint(needs.CPUs, needs.MemoryMiB, needs.GPUs, needs.DiskMiB, needs.Time.Milliseconds()), "3") % 2)
	}
	for name, tt := range map[string]struct {
		needs  []int // of each resource, in all combinations
		takers func(matching.Resources) string
		want   int
		most   []int // of each resource, of the merged classes
	}{
		"a factor of 16": {[]int{1, 2, 4, 8, 16, 32, 64, 128}, func(matching.Resources) string { return "" }, 32, []int{8, 128}},
		"any factor":     {[]int{0, 1, 3, 1 << 50}, oddThrees, 2*(32-1) + 1, []int{0, 1, 3, 1 << 50}},
	} {
		var all []matching.Class
		for i := range int(math.Pow(float64(len(tt.needs)), 5)) {
			nth := func() int {
				n := tt.needs[i%len(tt.needs)]
				i /= len(tt.needs)
				return n
			}
			needs := corral.Resources{CPUs: nth(), MemoryMiB: nth(), GPUs: nth(), DiskMiB: nth()}
			all = append(all, matching.Class{Needs: matching.Resources{Resources: needs, Time: time.Duration(min(nth(), 1<<40)) * time.Millisecond}, Jobs: 1})
		}
		got := matching.Merge(all, tt.takers)
		if len(got) != tt.want {
			t.Errorf("%s: %d classes of %d, want %d", name, len(got), len(all), tt.want)
		}
		if i := slices.IndexFunc(got, func(c matching.Class) bool {
			return !slices.Contains(tt.most, c.Needs.CPUs) || !slices.Contains(tt.most, c.Needs.MemoryMiB)
		}); i >= 0 {
			t.Errorf("%s: a class needs %+v, want %v of each resource", name, got[i].Needs, tt.most)
		}
	}
}

// takers returns which of two hosts take a job with these needs: one has more cpus, the other more memory.
func takers(needs matching.Resources) string {
	const most = 1 << 30
	wide := corral.Resources{CPUs: most, MemoryMiB: most / 3, GPUs: most, DiskMiB: most}
	deep := corral.Resources{CPUs: most / 3, MemoryMiB: most, GPUs: most, DiskMiB: most}
	return fmt.Sprint(needs.FitIn(wide), needs.FitIn(deep))
}

func holds(g, c matching.Class) bool {
	return takers(c.Needs) == takers(g.Needs) && c.Needs.FitIn(g.Needs.Resources) && c.Needs.Time <= g.Needs.Time && c.Jobs <= g.Jobs &&
		(c.Needs.MemoryMiB == 0) == (g.Needs.MemoryMiB == 0) && (c.Needs.Time == 0) == (g.Needs.Time == 0) &&
		(c.Needs.GPUs == 0) == (g.Needs.GPUs == 0) && (c.Needs.DiskMiB == 0) == (g.Needs.DiskMiB == 0)
}
