package planner

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

// The tree finds the same host as a linear search, for any sequence of changes and any set of suitable hosts.
func TestFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "hosts")
		hosts, free := newHostTree(n), make([]corral.Resources, n)
		resources := rapid.Custom(func(t *rapid.T) corral.Resources {
			return corral.Resources{CPUs: rapid.IntRange(0, 4).Draw(t, "cpus"), MemoryMiB: rapid.IntRange(0, 4).Draw(t, "mib")}
		})
		for range 20 {
			i := rapid.IntRange(0, n-1).Draw(t, "host")
			free[i] = resources.Draw(t, "free")
			hosts.set(i, free[i])
			need, odd := resources.Draw(t, "need"), rapid.Bool().Draw(t, "odd")
			need.CPUs = max(1, need.CPUs)
			suits := func(host int) bool { return !odd || host%2 == 1 }
			want := -1
			for k := n - 1; k >= 0; k-- {
				if need.FitIn(free[k]) && suits(k) {
					want = k
				}
			}
			if got := hosts.first(need, suits); got != want || hosts.at(i) != free[i] {
				t.Fatalf("%v on %v: host %d, want %d", need, free, got, want)
			}
		}
	})
}
