package virtual_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/virtual"
)

const (
	h              = time.Hour
	m              = time.Minute
	su  cost.Money = 1_000_000
	ten            = ensemble.Whole / 10
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

// 32 processors in four hours, a fee of 100 processor hours, and a penalty of 10 % for cancelling.
func TestCombine(t *testing.T) {
	t.Parallel()
	w := virtual.Wanted{Start: 4 * h, Length: h, Processors: 32}
	for name, c := range map[string]struct {
		fee       cost.Money
		sold, ran bool
		started   time.Duration
		want      virtual.Choice
		paid      cost.Money
	}{
		"two hours before":           {100 * su, true, true, 2 * h, virtual.Virtual, 74 * su},
		"three hours before":         {100 * su, true, true, h, virtual.Sold, 100 * su},
		"as dear as the reservation": {100 * su, true, true, 4*h - 90*100*h/32/100, virtual.Virtual, 100 * su},
		"not started":                {100 * su, true, false, 0, virtual.Sold, 100 * su},
		"without a fee":              {0, true, true, 4 * h, virtual.Sold, 0},
		"nothing is sold":            {0, false, true, 3 * h, virtual.Virtual, 32 * su},
		"neither":                    {0, false, false, 0, virtual.Neither, 0},
	} {
		held := virtual.Held{Fee: c.fee, Sold: c.sold, Started: c.ran, Penalty: ten}
		if c.ran {
			held.Idle = w.Idle(c.started, su)
		}
		if got, paid := virtual.Combine(held); got != c.want || paid != c.paid {
			t.Errorf("%s: %s for %s, want %s for %s", name, got, paid, c.want, c.paid)
		}
	}
}

// If the site's reservation exists, the cost never exceeds its fee. One of the two reservations is kept if any exists.
// The penalty is paid only if a reservation is cancelled. A job costs its idle time, at most from its submission on.
func TestCombining(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		w := virtual.Wanted{Start: time.Duration(number("start", 1, 600)) * m, Length: h, Processors: number("n", 1, 64)}
		odds := func(_ int, walltime, within time.Duration) float64 {
			return float64(int(within/m)*7919%1000) / 1000
		}
		s, err := virtual.Plan(0, w, 0, odds)
		if err != nil {
			if corral.KindOf(err) != corral.Unsatisfiable {
				t.Fatal(err)
			}
			return
		}
		if s.At+s.Walltime != w.Start+w.Length || s.At < 0 || s.At >= w.Start {
			t.Fatalf("%+v for %+v", s, w)
		}
		began := s.At + time.Duration(number("waits", 0, int((w.Start-s.At)/m)+30))*m
		held := virtual.Held{Fee: cost.Money(number("fee", 0, 300)) * su, Sold: rapid.Bool().Draw(t, "sold"),
			Started: began <= w.Start, Penalty: ensemble.Share(number("penalty", 0, 10)) * ten}
		if held.Started {
			held.Idle = w.Idle(began, su)
		}
		if most := w.Idle(s.At, su); held.Idle > most {
			t.Fatalf("%s for holding from %s on, and %s from the submission on", held.Idle, began, most)
		}
		got, paid := virtual.Combine(held)
		switch {
		case (got != virtual.Neither) != (held.Sold || held.Started):
			t.Fatalf("%+v: %s", held, got)
		case held.Sold && paid > held.Fee:
			t.Fatalf("%+v: %s is paid", held, paid)
		case got == virtual.Virtual && held.Sold && paid != held.Idle+held.Penalty.Part(held.Fee):
			t.Fatalf("%+v: %s is paid, without the penalty", held, paid)
		case got == virtual.Sold && paid != held.Fee:
			t.Fatalf("%+v: %s is paid", held, paid)
		case got == virtual.Sold && held.Started && held.Idle+held.Penalty.Part(held.Fee) < held.Fee:
			t.Fatalf("%+v: the cheaper one was given up", held)
		}
	})
}
