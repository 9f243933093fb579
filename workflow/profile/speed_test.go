package profile_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow/profile"
)

// Two machines are compared by the classes that ran on both; a third is compared through the second, a fourth not at
// all.
func TestSpeeds(t *testing.T) {
	t.Parallel()
	var samples []profile.Sample
	on := func(host, name string, n int, seconds float64) {
		for _, s := range runtimes("r", name, 0, slices.Repeat([]float64{seconds}, n)...) {
			s.Host = host
			samples = append(samples, s)
		}
	}
	on("old", "map", 20, 100)
	on("new", "map", 10, 50)
	on("old", "sort", 5, 10)
	on("new", "sort", 5, 5)
	on("new", "plot", 5, 8)
	on("newest", "plot", 5, 4)
	on("apart", "other", 5, 1)
	on("few", "map", 2, 1)
	on("", "map", 9, 1)
	got := of(t, samples).Speeds()
	want := profile.Speeds{
		"old": {Factor: 1, Shared: 2}, "new": {Factor: 2, Shared: 3}, "newest": {Factor: 4, Shared: 1},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-6 })); diff != "" {
		t.Error(diff)
	}
	if s := profile.New().Speeds(); len(s) != 0 {
		t.Errorf("Speeds of nothing = %v", s)
	}
	e := profile.NewEstimator(of(t, samples), got)
	for host, want := range map[string]time.Duration{
		"old": 10 * time.Second, "new": 5 * time.Second, "unheard of": 10 * time.Second,
	} {
		x, ok := e.Estimate(profile.Subject{Transformation: "sort", Host: host}, -1)
		if !ok || (x.Point-want).Abs() > time.Millisecond {
			t.Errorf("sort on %s takes %v, want %v", host, x.Point, want)
		}
	}
}
