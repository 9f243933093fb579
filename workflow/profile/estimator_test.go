package profile_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral/workflow/profile"
)

// estimate returns the estimate by p for a task of transformation t.
func estimate(p *profile.Profile, t string, level int, input int64) (profile.Estimate, bool) {
	return profile.NewEstimator(p, nil).Estimate(profile.Subject{Transformation: t, Level: level}, input)
}

// sized returns samples of one run whose runtimes are f of their input sizes.
func sized(run string, f func(input float64) float64, inputs ...float64) []profile.Sample {
	var all []profile.Sample
	for i, in := range inputs {
		measured := values{profile.Runtime: f(in), profile.Input: in}
		all = append(all, sample(run, fmt.Sprint(i), "map", 0, measured))
	}
	return all
}

func TestEstimatorChoosesAModel(t *testing.T) {
	t.Parallel()
	constant := func(float64) float64 { return 10 }
	rate := func(in float64) float64 { return in / 100 }
	affine := func(in float64) float64 { return 50 + in/100 }
	runs := func(runs ...[]profile.Sample) []profile.Sample { return slices.Concat(runs...) }
	for name, c := range map[string]struct {
		samples []profile.Sample
		model   profile.Model
		at      int64
		want    time.Duration
	}{
		"proportional": {
			runs(sized("a", rate, 100, 200, 300), sized("b", rate, 1000, 5000)),
			profile.Proportional, 10000, 100 * time.Second,
		},
		"linear": {
			runs(sized("a", affine, 100, 2000, 300), sized("b", affine, 1000, 5000, 4000)),
			profile.Linear, 10000, 150 * time.Second,
		},
		"the mean where nothing is better": {
			runs(sized("a", constant, 1, 2), sized("b", constant, 3, 4)),
			profile.Mean, 100, 10 * time.Second,
		},
		"the mean for a single run": {
			sized("a", rate, 100, 200, 300),
			profile.Mean, 10000, 2 * time.Second,
		},
		"input not known": {
			runs(sized("a", rate, 100, 200, 300), sized("b", rate, 1000, 5400)),
			profile.Proportional, -1, 14 * time.Second,
		},
		"the median, with one far out": {
			runs(runtimes("a", "map", 0, 1, 1), runtimes("b", "map", 0, 1, 1), runtimes("c", "map", 0, 1, 1, 900)),
			profile.Median, 0, time.Second,
		},
	} {
		x, ok := estimate(of(t, c.samples), "map", 0, c.at)
		if !ok || x.Model != c.model || (x.Point-c.want).Abs() > time.Microsecond {
			t.Errorf("%s: %v by %s, want %v by %s", name, x.Point, x.Model, c.want, c.model)
		}
	}
}

// A regression never yields an impossible value, even far outside the measured range.
func TestEstimatesStayInRange(t *testing.T) {
	t.Parallel()
	falling := func(in float64) float64 { return 100 - in }
	p := of(t, sized("a", falling, 10, 50, 90), sized("b", falling, 20, 60, 80))
	for _, in := range []int64{0, 95, 1 << 40, math.MaxInt64} {
		if x, _ := estimate(p, "map", 0, in); x.Point < 10*time.Second || x.Point > 101*time.Second {
			t.Errorf("of %d bytes: %v", in, x.Point)
		}
	}
	rising := func(in float64) float64 { return in * 1e9 }
	x, _ := estimate(of(t, sized("a", rising, 1, 2, 3), sized("b", rising, 1, 2, 9)), "map", 0, math.MaxInt64)
	if x.Point != math.MaxInt64 || x.Draw(0.9) != math.MaxInt64 {
		t.Errorf("beyond the range of durations: %v, %v", x.Point, x.Draw(0.9))
	}
}

// Outcomes are distributed like the measurements: with values of u on a grid, every sample is drawn once.
func TestDrawsAreOutcomes(t *testing.T) {
	t.Parallel()
	x, ok := estimate(of(t, runtimes("a", "map", 0, 1, 2, 3, 10)), "map", 0, -1)
	if !ok || x.Point != 4*time.Second || x.Mean != 4*time.Second || x.Samples != 4 {
		t.Fatalf("Estimate = %+v", x)
	}
	for i, want := range []time.Duration{1, 2, 3, 10} {
		if got := x.Draw((float64(i) + 0.5) / 4); got != want*time.Second {
			t.Errorf("outcome %d is %v, want %v s", i, got, want)
		}
	}
	if x.Draw(1) != 10*time.Second || x.Draw(-1) != time.Second || x.Quantile(0.5) != 2500*time.Millisecond {
		t.Errorf("at the ends %v, %v; median %v", x.Draw(-1), x.Draw(1), x.Quantile(0.5))
	}
	none := profile.Estimate{Point: time.Second}
	if none.Draw(0.5) != time.Second || none.Quantile(1) != time.Second {
		t.Error("an estimate that was made by hand has one outcome")
	}
}

// For a published table, only the mean and the sd are known: the outcomes have the same mean and sd, and no outcome is
// negative.
func TestEstimatesFromTheLibrary(t *testing.T) {
	t.Parallel()
	p, _ := profile.FromLibrary("cybershake")
	x, ok := estimate(p, "SeisSynth", 7, -1)
	if !ok || x.Model != profile.Mean || x.Point != 79470*time.Millisecond || x.Samples != 404864 {
		t.Fatalf("Estimate = %+v", x)
	}
	if (x.Mean-x.Point).Abs() > time.Millisecond || math.Abs(x.SD.Seconds()-70.86) > 2 || x.Quantile(0) <= 0 {
		t.Errorf("outcomes of mean %v, sd %v, at least %v", x.Mean, x.SD, x.Quantile(0))
	}
	if mib := x.MemoryBytes >> 20; mib != 2268 { // 817.59 + 3 × 483.51
		t.Errorf("memory %d MiB", mib)
	}
	if _, ok := estimate(p, "unheard of", 0, 0); ok {
		t.Error("an estimate of what the profile does not have")
	}
	p, _ = profile.FromLibrary("epigenomics")
	if x, _ := estimate(p, "pileup", 0, -1); x.CPUs != 2 || x.Draw(0.3) != 55950*time.Millisecond {
		t.Errorf("pileup: %d cpus, %v; its table has 153 %% and no sd", x.CPUs, x.Draw(0.3))
	}
}

// A task at a level that is not in the profile is estimated from all levels; its memory is planned by the maximum.
func TestEstimatesByLevel(t *testing.T) {
	t.Parallel()
	p := of(t, runtimes("a", "add", 1, 1, 1, 1, 1, 1, 1), runtimes("a", "add", 2, 8, 8, 8, 8, 8, 8),
		[]profile.Sample{
			sample("a", "x", "fit", 0, values{profile.Runtime: 0, profile.Memory: 5}),
			sample("a", "y", "fit", 0, values{profile.Runtime: 0, profile.Memory: 7}),
		})
	for level, want := range map[int]time.Duration{1: time.Second, 2: 8 * time.Second, 5: 4500 * time.Millisecond} {
		if x, ok := estimate(p, "add", level, -1); !ok || x.Point != want {
			t.Errorf("level %d: %v, want %v", level, x.Point, want)
		}
	}
	if x, ok := estimate(p, "fit", 0, 0); !ok || x.Point != 0 || x.Draw(0.5) != 0 || x.MemoryBytes != 7 {
		t.Errorf("fit: %+v, %v; a measured 0 is an estimate", x, ok)
	}
}

// Each run is estimated from the others alone.
func TestValidate(t *testing.T) {
	t.Parallel()
	p := of(t, runtimes("a", "map", 0, 10, 10), runtimes("b", "map", 0, 20), runtimes("a", "once", 0, 5))
	got := profile.Validate(p, nil)
	want := []profile.Score{{
		Transformation: "map", Level: profile.AllLevels, Tasks: 3, Actual: 40, Wrong: 30, WrongByMean: 30,
		WrongBy: [4]float64{30, 30, 30, 30}, // only one run is left to learn from, and no sizes are known
	}}
	if !slices.Equal(got, want) || got[0].Error() != 0.75 {
		t.Errorf("Validate = %+v, want %+v", got, want)
	}
}

// In the choice of a model, a long run has the same weight as a short one, and the number of runs may exceed the number
// of folds.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	rate := func(in float64) float64 { return in }
	p := profile.New()
	for i := range 100 {
		for _, s := range sized(fmt.Sprintf("run%d", i), rate, float64(i+1), float64(2*i+1)) {
			if err := p.Add(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if x, _ := estimate(p, "map", 0, 1000); x.Model != profile.Proportional {
		t.Errorf("model %s", x.Model)
	}
	if s := profile.Validate(p, nil); s[0].Tasks != 200 || s[0].Error() > 1e-9 {
		t.Errorf("Validate = %+v", s)
	}
}
