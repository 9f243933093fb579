package main

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/virtual"
)

const (
	hour            = time.Hour
	m               = time.Minute
	su   cost.Money = 1_000_000
	ten             = plan.Whole / 10
)

// 32 processors in four hours, a fee of 100 processor hours, and a penalty of 10 % for cancelling.
func TestCombine(t *testing.T) {
	t.Parallel()
	w := virtual.Wanted{Start: 4 * hour, Length: hour, Processors: 32}
	for name, c := range map[string]struct {
		fee       cost.Money
		sold, ran bool
		started   time.Duration
		want      choice
		paid      cost.Money
	}{
		"two hours before":           {100 * su, true, true, 2 * hour, keepVirtual, 74 * su},
		"three hours before":         {100 * su, true, true, hour, keepSold, 100 * su},
		"as dear as the reservation": {100 * su, true, true, 4*hour - 90*100*hour/32/100, keepVirtual, 100 * su},
		"not started":                {100 * su, true, false, 0, keepSold, 100 * su},
		"without a fee":              {0, true, true, 4 * hour, keepSold, 0},
		"nothing is sold":            {0, false, true, 3 * hour, keepVirtual, 32 * su},
		"neither":                    {0, false, false, 0, keepNeither, 0},
	} {
		h := held{Fee: c.fee, Sold: c.sold, Started: c.ran, Penalty: ten}
		if c.ran {
			h.Idle = idle(w, c.started, su)
		}
		if got, paid := combine(h); got != c.want || paid != c.paid {
			t.Errorf("%s: %s for %s, want %s for %s", name, got, paid, c.want, c.paid)
		}
	}
}

// If the site's reservation exists, the cost never exceeds its fee. One of the two reservations is kept if any exists.
// The penalty is paid only if a reservation is cancelled. A job costs its idle time, at most from its submission on.
func TestCombining(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		w := virtual.Wanted{Start: time.Duration(number("start", 1, 600)) * m, Length: hour, Processors: number("n", 1, 64)}
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
		h := held{Fee: cost.Money(number("fee", 0, 300)) * su, Sold: rapid.Bool().Draw(t, "sold"),
			Started: began <= w.Start, Penalty: plan.Share(number("penalty", 0, 10)) * ten}
		if h.Started {
			h.Idle = idle(w, began, su)
		}
		if most := idle(w, s.At, su); h.Idle > most {
			t.Fatalf("%s for holding from %s on, and %s from the submission on", h.Idle, began, most)
		}
		got, paid := combine(h)
		switch {
		case (got != keepNeither) != (h.Sold || h.Started):
			t.Fatalf("%+v: %s", h, got)
		case h.Sold && paid > h.Fee:
			t.Fatalf("%+v: %s is paid", h, paid)
		case got == keepVirtual && h.Sold && paid != h.Idle+h.Penalty.Part(h.Fee):
			t.Fatalf("%+v: %s is paid, without the penalty", h, paid)
		case got == keepSold && paid != h.Fee:
			t.Fatalf("%+v: %s is paid", h, paid)
		case got == keepSold && h.Started && h.Idle+h.Penalty.Part(h.Fee) < h.Fee:
			t.Fatalf("%+v: the cheaper one was given up", h)
		}
	})
}
