package corral_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

func TestSpeed(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		speed                             corral.Speed
		time, takes, within, estimateOfIt time.Duration
	}{
		{0, s + 1, s + 1, s + 1, s + 1},
		{1, s + 1, s + 1, s + 1, s + 1},
		{0.5, 10 * s, 20 * s, 5*s + 250*time.Microsecond, 5 * s},
		{0.3, s, 3333 * ms, 300*ms + 150*time.Microsecond, 300 * ms},
		{0.5, -s, -2 * s, -s, -500 * ms},
	} {
		if got := tt.speed.Takes(tt.time); got != tt.takes {
			t.Errorf("%v.Takes(%v) = %v, want %v", tt.speed, tt.time, got, tt.takes)
		}
		if got := tt.speed.Within(tt.time); got != tt.within {
			t.Errorf("%v.Within(%v) = %v, want %v", tt.speed, tt.time, got, tt.within)
		}
		if got := tt.speed.Estimate(tt.time); got != tt.estimateOfIt {
			t.Errorf("%v.Estimate(%v) = %v, want %v", tt.speed, tt.time, got, tt.estimateOfIt)
		}
	}
	for speed, want := range map[corral.Speed]bool{0: true, 0.1: true, 1: true, 1.1: false, -0.1: false,
		corral.Speed(math.NaN()): false} {
		if got := speed.Valid(); got != want {
			t.Errorf("%v.Valid() = %v, want %v", speed, got, want)
		}
	}
}

// An estimate fits into the time that is left exactly if the task takes at most that time.
func TestWithinIsTheInverseOfTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		speed := corral.Speed(rapid.Float64Range(0.01, 1).Draw(t, "speed"))
		estimate := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "estimate")) * time.Millisecond
		near := speed.Takes(estimate) + time.Duration(rapid.Int64Range(-3e6, 3e6).Draw(t, "off"))
		if fits := speed.Takes(estimate) <= near; near >= 0 && fits != (estimate <= speed.Within(near)) {
			t.Fatalf("a task of %v takes %v; in %v the longest estimate is %v", estimate, speed.Takes(estimate), near,
				speed.Within(near))
		}
	})
}
