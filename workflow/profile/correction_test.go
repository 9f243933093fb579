package profile_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/workflow/profile"
)

// The factor is the ratio of the sums, shrunk as if one more task had taken the mean estimate.
func TestCorrection(t *testing.T) {
	t.Parallel()
	type task struct{ took, estimate time.Duration }
	const s = time.Second
	for _, c := range []struct {
		name    string
		tasks   []task
		assumed bool
		want    float64
		ok      bool
	}{
		{"nothing has ended", nil, false, 1, false},
		{"nothing has ended, and estimates are assumed", nil, true, 1, false},
		{"as estimated", []task{{10 * s, 10 * s}}, false, 1, true},
		{"one that took five times as long", []task{{50 * s, 10 * s}}, false, 60.0 / 20, true},
		{"the estimate was only assumed", []task{{50 * s, 10 * s}}, true, 5, true},
		{"many that took twice as long", []task{{20 * s, 10 * s}, {20 * s, 10 * s}, {20 * s, 10 * s}}, false, 70.0 / 40, true},
		{"long tasks weigh more", []task{{10 * s, 10 * s}, {60 * s, 30 * s}}, false, 90.0 / 60, true},
		{"they took no time", []task{{0, 10 * s}}, false, 10.0 / 20, true},
		{"they took no time, and estimates are assumed", []task{{0, 10 * s}}, true, 0, true},
		{"estimates of 0", []task{{5 * s, 0}}, false, 1, false},
		{"an estimate of 0 beside another", []task{{5 * s, 0}, {10 * s, 10 * s}}, false, 20.0 / 15, true},
		{"the longest times", []task{{math.MaxInt64, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}}, false, 1, true},
	} {
		var x profile.Correction
		for _, k := range c.tasks {
			x = x.With(k.took, k.estimate)
		}
		if got, ok := x.Factor(c.assumed); math.Abs(got-c.want) > 1e-12 || ok != c.ok {
			t.Errorf("%s: factor %v, %t, want %v, %t", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	got := profile.Kinds([]profile.Subject{{Transformation: "a"}, {Transformation: "b", Level: 1}, {Transformation: "a", Level: 2}})
	if diff := cmp.Diff([]int32{1, 2, 1}, got); diff != "" {
		t.Error(diff)
	}
}
