package matching_test

import (
	"fmt"
	"slices"
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

// takers returns which of two hosts take a job with these needs: one has more cpus, the other more memory.
func takers(needs matching.Resources) string {
	const most = 1 << 30
	wide := corral.Resources{CPUs: most, MemoryMiB: most / 3, GPUs: most, DiskMiB: most}
	deep := corral.Resources{CPUs: most / 3, MemoryMiB: most, GPUs: most, DiskMiB: most}
	return fmt.Sprint(needs.FitIn(wide), needs.FitIn(deep))
}

func holds(g, c matching.Class) bool {
	return takers(c.Needs) == takers(g.Needs) && c.Needs.FitIn(g.Needs.Resources) && c.Needs.Time <= g.Needs.Time && c.Jobs <= g.Jobs &&
		(c.Needs.GPUs == 0) == (g.Needs.GPUs == 0) && (c.Needs.DiskMiB == 0) == (g.Needs.DiskMiB == 0)
}
