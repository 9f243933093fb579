package virtual_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/planner/virtual"
)

const (
	h = time.Hour
	m = time.Minute
)

// The thesis's examples (figures 35 and 36): 32 processors in 240 minutes. For one hour the odds are best if the job is
// submitted in 110 minutes, and for four hours if it is submitted now; if odds are equal, the earliest time is chosen.
func TestPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length, limit time.Duration
		odds          virtual.Predictor
		want          virtual.Submission
		kind          corral.Kind
	}{
		"an hour": {h, 0, func(_ int, walltime, within time.Duration) float64 {
			if within >= 120*m && within <= 130*m {
				return 0.772
			}
			return 0.6
		}, virtual.Submission{At: 110 * m, Walltime: 190 * m, Chance: 0.772}, ""},
		"four hours": {4 * h, 0, func(_ int, _, within time.Duration) float64 { return 0.747 * float64(within) / float64(4*h) },
			virtual.Submission{At: 0, Walltime: 480 * m, Chance: 0.747}, ""},
		"equal odds": {h, 0, func(int, time.Duration, time.Duration) float64 { return 1 },
			virtual.Submission{At: 0, Walltime: 5 * h, Chance: 1}, ""},
		"a limit": {h, 3 * h, func(int, time.Duration, time.Duration) float64 { return 1 },
			virtual.Submission{At: 2 * h, Walltime: 3 * h, Chance: 1}, ""},
		"over the limit": {4 * h, 4 * h, func(int, time.Duration, time.Duration) float64 { return 1 },
			virtual.Submission{}, corral.Unsatisfiable},
		"no chance": {h, 0, func(int, time.Duration, time.Duration) float64 { return 0 },
			virtual.Submission{}, corral.Unsatisfiable},
		"no time": {-h, 0, func(int, time.Duration, time.Duration) float64 { return 1 },
			virtual.Submission{}, corral.Invalid},
	} {
		got, err := virtual.Plan(0, virtual.Wanted{Start: 240 * m, Length: c.length, Processors: 32}, c.limit, c.odds)
		if got != c.want || (err != nil || c.kind != "") && corral.KindOf(err) != c.kind {
			t.Errorf("%s: %+v, %v; want %+v, %s", name, got, err, c.want, c.kind)
		}
	}
}

// A job requests the time from its submission to the wanted end, and is submitted between now and the wanted start.
func TestSubmission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		w := virtual.Wanted{Start: time.Duration(number("start", 1, 600)) * m, Length: h, Processors: number("n", 1, 64)}
		s, err := virtual.Plan(0, w, 0, func(_ int, walltime, within time.Duration) float64 {
			return float64(int(within/m)*7919%1000) / 1000
		})
		if err != nil && corral.KindOf(err) != corral.Unsatisfiable {
			t.Fatal(err)
		}
		if err == nil && (s.At+s.Walltime != w.Start+w.Length || s.At < 0 || s.At >= w.Start) {
			t.Fatalf("%+v for %+v", s, w)
		}
	})
}
