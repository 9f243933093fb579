package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow/dag"
)

// Lacks are found before anything is released: tasks with the same lack are reported together, and tasks that were done
// before lack nothing.
func TestLacks(t *testing.T) {
	t.Parallel()
	task := func(cpus, memory int, time time.Duration) TaskSpec {
		return TaskSpec{CPUs: cpus, MemoryMiB: memory, Estimate: time}
	}
	tasks := []TaskSpec{
		task(1, 100, time.Second), task(4, 100, time.Second), task(1, 9000, time.Second), task(4, 0, time.Minute),
		task(1, 0, 48*time.Hour), {CPUs: 64, Done: true, Estimate: time.Hour},
	}
	g, err := dag.New(len(tasks), nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Graph: g, Tasks: tasks}
	worker := Capacity{Worker: "w", CPUs: 2, MemoryMiB: 1000, Left: time.Hour}
	cpus := Lack{[]int{1, 3}, "needs 4 cpus; the largest worker here has 2"}
	memory := Lack{[]int{2}, "needs 9000 MiB; the largest worker here has 1000 MiB"}
	stay := Lack{[]int{4}, "needs 48h0m0s; the worker here that stays longest has 1h0m0s left"}
	for name, tc := range map[string]struct {
		capacities []Capacity
		want       []Lack
	}{
		"no worker":     {nil, []Lack{{[]int{0, 1, 2, 3, 4}, "needs a worker; the cluster has none and none is requested"}}},
		"a small one":   {[]Capacity{worker}, []Lack{cpus, memory, stay}},
		"two":           {[]Capacity{worker, {Worker: "big", CPUs: 8, MemoryMiB: 8000, Left: time.Hour}}, []Lack{{[]int{2}, "needs 9000 MiB; the largest worker here has 8000 MiB"}, stay}},
		"one for all":   {[]Capacity{{CPUs: 8, MemoryMiB: 1 << 20, Left: 99 * time.Hour}}, nil},
		"none together": {[]Capacity{worker, {CPUs: 4, MemoryMiB: 0, Left: 99 * time.Hour}}, []Lack{{[]int{1}, "needs 4 cpus, 100 MiB of memory and 1s; no worker here has all of that together"}, memory}},
	} {
		if diff := cmp.Diff(tc.want, Lacks(spec, Offer{Capacities: tc.capacities})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
