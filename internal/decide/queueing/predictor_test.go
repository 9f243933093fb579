package queueing_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/queueing"
)

// shaped returns an attempt with the given number of cpus, and the given walltime and wait in minutes.
func shaped(cpus, walltime, minutes int) corral.Wait {
	w := waitOf(minutes)
	w.CPUs, w.Walltime = cpus, corral.Seconds(time.Duration(walltime)*time.Minute)
	return w
}

func TestPredict(t *testing.T) {
	t.Parallel()
	var ten []corral.Wait
	for i := range 10 {
		ten = append(ten, shaped(4, 60, 1+i))
	}
	atOnce := func(cpus, walltime int) []corral.Wait { // ten that start at once
		return slices.Repeat([]corral.Wait{shaped(cpus, walltime, 0)}, 10)
	}
	for name, c := range map[string]struct {
		waits                  []corral.Wait
		cpus, walltime, within int
		want                   float64
		likes                  int
	}{
		"none":                                {nil, 4, 60, 100, 0, 0},
		"six of ten":                          {ten, 4, 60, 6, 0.6, 10},
		"all":                                 {ten, 4, 60, 10, 1, 10},
		"at once":                             {ten, 4, 60, 0, 0, 10},
		"of a like shape":                     {ten, 7, 50, 6, 0.6, 10},
		"a smaller one starts no later":       {ten, 1, 60, 6, 0.6, 0},
		"a larger one starts no earlier":      {ten, 64, 60, 6, 0.6, 0},
		"one that waits counts as longer":     {append(ten[:9:9], waiting(60)), 4, 60, 9, 9.0 / 10, 9},
		"many that gave up at once":           {append(ten[:10:10], vain(1, 0, 100)...), 4, 60, 10, 1, 10},
		"one that waits in vain":              {[]corral.Wait{shapedVain(4, 60)}, 4, 60, 30, 0, 1},
		"smaller ones start sooner":           {append(ten[:10:10], atOnce(1, 60)...), 4, 60, 6, 0.6, 10},
		"shorter ones start sooner":           {append(ten[:10:10], atOnce(4, 1)...), 4, 60, 6, 0.6, 10},
		"small, short ones start sooner":      {slices.Concat(ten, atOnce(1, 60), atOnce(4, 1), atOnce(1, 1)), 4, 60, 6, 0.6, 10},
		"small ones waited longer: all alike": {append(ten[:10:10], shaped(1, 60, 20)), 1, 60, 6, 6.0 / 11, 1},
	} {
		p := queueing.NewPredictor(c.waits, noon.Add(time.Hour))
		got := p.Predict(c.cpus, time.Duration(c.walltime)*time.Minute, time.Duration(c.within)*time.Minute)
		if math.Abs(got.Estimate-c.want) > 1e-9 || got.Waits != c.likes || got.Bound != 0 {
			t.Errorf("%s: %+v, want %v of %d, and no bound", name, got, c.want, c.likes)
		}
	}
}

// shapedVain returns an attempt with the given number of cpus that has waited for the given number of minutes; vain
// returns many attempts that were abandoned.
func shapedVain(cpus, minutes int) corral.Wait {
	w := gaveUp(minutes)
	w.CPUs = cpus
	return w
}

func vain(cpus, minutes, n int) (all []corral.Wait) {
	for range n {
		all = append(all, shapedVain(cpus, minutes))
	}
	return all
}

// If no wait provides information about a time, the probability is unknown.
func TestNothingIsKnown(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string][]corral.Wait{"none": nil, "given up too soon": vain(4, 5, 3)} {
		p := queueing.NewPredictor(waits, noon.Add(time.Hour))
		if got := p.Predict(4, time.Hour, 10*time.Minute); got.Known || got.Estimate != 0 || got.Bound != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := queueing.NewPredictor(vain(4, 5, 3), noon).Predict(4, time.Hour, 5*time.Minute); !got.Known || got.Estimate != 0 {
		t.Errorf("that none started within five minutes is known: %+v", got)
	}
}

// The estimate is based on the latest 200 waits of like pilots.
func TestLatestWaitsCount(t *testing.T) {
	t.Parallel()
	waits := []corral.Wait{shaped(4, 60, 1)} // too long ago
	for i := range 200 {
		waits = append(waits, shaped(4, 60, 10+i%2*20))
	}
	p := queueing.NewPredictor(waits, noon.Add(time.Hour))
	for within, want := range map[int]float64{9: 0, 10: 0.5, 29: 0.5, 30: 1} {
		if got := p.Predict(4, time.Hour, time.Duration(within)*time.Minute); got.Estimate != want || got.Waits != 200 {
			t.Errorf("within %d minutes: %+v, want %v of 200", within, got, want)
		}
	}
}

// Pilots of any size have a class: the largest and the longest are like each other.
func TestLargestClass(t *testing.T) {
	t.Parallel()
	const cpus, minutes = 1 << 20, 1 << 22
	p := queueing.NewPredictor([]corral.Wait{shaped(cpus, minutes, 10), shaped(64*cpus, 8*minutes, 30), shaped(0, 0, 5)}, noon)
	for _, factor := range []int{1, 2, 30} {
		got := p.Predict(factor*cpus, time.Duration(factor)*minutes*time.Minute, 10*time.Minute)
		if got.Waits != 2 || got.Estimate != 0.5 {
			t.Errorf("%d times as large: %+v, want one of two", factor, got)
		}
	}
	if got := p.Predict(cpus/2, minutes*time.Minute, 10*time.Minute); got.Waits != 0 {
		t.Errorf("half as large: %+v, want none alike", got)
	}
	if got := p.Predict(cpus, minutes*time.Minute/4, 10*time.Minute); got.Waits != 0 {
		t.Errorf("a quarter as long: %+v, want none alike", got)
	}
	if got := p.Predict(1, time.Second, 5*time.Minute); got.Waits != 1 || got.Estimate != 1 {
		t.Errorf("the smallest: %+v, want the one", got)
	}
}

// The bound is the largest share for which Bound is within the time. Of 200 waits, which count as 10, the 9th bounds a
// share of 0.6 and the longest one of 0.7; of the latest 160, which count as 8, the 6th bounds 0.4. Much wider, much
// narrower and longer pilots do not count.
func TestPredictBoundShares(t *testing.T) {
	t.Parallel()
	var waits []corral.Wait
	for i := range 200 {
		waits = append(waits, shaped(4, 60, 1+i), shaped(16, 60, 500), shaped(1, 60, 0), shaped(4, 300, 500))
	}
	p := queueing.NewPredictor(waits, noon.Add(time.Hour))
	for within, want := range map[int]float64{200: 0.7, 199: 0.6, 180: 0.6, 179: 0.4, 160: 0.4} {
		if got := p.Predict(4, time.Hour, time.Duration(within)*time.Minute); got.Bound != want {
			t.Errorf("within %d minutes: %+v, want a bound of %v", within, got, want)
		}
	}
}

// With many waits there is a bound, which is more cautious than the estimate.
func TestPredictBound(t *testing.T) {
	t.Parallel()
	var many []corral.Wait
	for i := range 2000 {
		many = append(many, shaped(4, 60, 1+i*7919%100))
	}
	p := queueing.NewPredictor(many, noon.Add(time.Hour))
	last := 0.0
	for _, within := range []int{1, 20, 50, 80, 99, 100} {
		got := p.Predict(4, time.Hour, time.Duration(within)*time.Minute)
		if got.Bound > got.Estimate || got.Bound < last || within >= 80 && got.Bound == 0 {
			t.Errorf("within %d minutes: %+v, and %v before", within, got, last)
		}
		last = got.Bound
	}
}

// Whatever the past waits were, more time makes a start more probable, and more cpus or a longer walltime make it less
// probable.
func TestPredictionsAreOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		var waits []corral.Wait
		for range number("waits", 0, 40) {
			w := shaped(1<<number("cpus", 0, 6), 1<<number("walltime", 0, 12), number("waited", 0, 100))
			if number("vain", 0, 2) == 0 {
				w.StartedAt, w.EndedAt, w.Outcome = time.Time{}, w.StartedAt, corral.OutcomeRemoved
			}
			waits = append(waits, w)
		}
		p := queueing.NewPredictor(waits, noon)
		cpus, walltime, within := 1<<number("n", 0, 7), 1<<number("w", 0, 13), number("within", 0, 110)
		minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
		estimate := func(cpus, walltime, within int) float64 {
			one := p.Predict(cpus, minutes(walltime), minutes(within))
			if one.Bound > one.Estimate {
				t.Fatalf("at least %v, and probably %v", one.Bound, one.Estimate)
			}
			return one.Estimate
		}
		got := estimate(cpus, walltime, within)
		if got < 0 || got > 1 || math.IsNaN(got) {
			t.Fatalf("an estimate of %v", got)
		}
		for name, other := range map[string]float64{
			"cpus": estimate(2*cpus, walltime, within), "walltime": estimate(cpus, 4*walltime, within),
		} {
			if other > got {
				t.Fatalf("%v, and with more %s %v", got, name, other)
			}
		}
		if _, known := p.Estimate(cpus, minutes(walltime), minutes(within)); known && estimate(cpus, walltime, within-1) > got {
			t.Fatalf("%v, and with less time %v", got, estimate(cpus, walltime, within-1))
		}
	})
}
