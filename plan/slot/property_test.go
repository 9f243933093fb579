package slot_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/slot"
)

// At every instant free and taken processors add up to all processors. Free slots have a length, those with an end are
// neither divisible nor extensible, and after the last end all processors are free forever (F3). No start is earlier
// than in a profile that counts processors, and each is the earliest start at which free slots together are wide enough
// (F4). Taken pieces never move.
func TestMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "processors")
		l, count := slot.Machine(n, 0), slot.NewProfile(n, 0)
		l.Record()
		for range rapid.IntRange(1, 12).Draw(t, "tasks") {
			width := rapid.IntRange(1, n).Draw(t, "width")
			length := time.Duration(rapid.IntRange(1, 5).Draw(t, "length")) * h
			earliest := time.Duration(rapid.IntRange(0, 8).Draw(t, "earliest")) * h
			want := earliestPinned(l.Free(1000*h), earliest, length, width)
			start, ok := l.Place(earliest, length, width)
			if !ok || start != want {
				t.Fatalf("%d × %s from %s starts at %s, %v; want %s", width, length, earliest, start, ok, want)
			}
			if at, _ := count.Fit(earliest, length, width); start < at {
				t.Fatalf("%d × %s from %s starts at %s, and may at %s only", width, length, earliest, start, at)
			}
			count.Take(start, start+length, width)
			balanced(t, n, l)
		}
	})
}

// earliestPinned returns the first instant at which free slots that last long enough are wide enough together; it
// examines each hour.
func earliestPinned(free []slot.Slot, earliest, length time.Duration, width int) time.Duration {
	for at := earliest; ; at += h {
		n := 0
		for _, s := range free {
			if s.Start <= at && (s.Extensible || s.End() >= at+length) {
				n += s.Processors
			}
		}
		if n >= width {
			return at
		}
	}
}

// balanced checks, hour by hour, that free and taken processors add up to all processors, and checks the free slots in
// detail.
func balanced(t *rapid.T, n int, l *slot.List) {
	last := time.Duration(0)
	for _, p := range l.Taken() {
		last = max(last, p.End())
	}
	free := l.Free(1000 * h)
	for at := time.Duration(0); at <= last; at += h {
		sum := 0
		for _, s := range free {
			if s.Start <= at && at < s.End() {
				sum += s.Processors
			}
		}
		open := sum
		for _, p := range l.Taken() {
			if p.Start <= at && at < p.End() {
				sum += p.Processors
			}
		}
		if sum != n || at == last && open != n {
			t.Fatalf("of %d processors %d are free or taken at %s, and %d free", n, sum, at, open)
		}
	}
	for _, s := range free {
		if s.Length <= 0 || s.Processors < 1 || s.Divisible != s.Extensible || s.Extensible != (s.End() == 1000*h) {
			t.Fatalf("%+v is free", s)
		}
	}
}

// slots generates slots of one site, which may overlap.
func slots(t *rapid.T) []slot.Slot {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) slot.Slot {
		return slot.Slot{
			Start:      time.Duration(rapid.IntRange(0, 5).Draw(t, "start")) * h,
			Length:     time.Duration(rapid.IntRange(1, 5).Draw(t, "length")) * h,
			Processors: rapid.IntRange(1, 4).Draw(t, "processors"), Price: 1_000_000,
			Divisible: rapid.Bool().Draw(t, "divisible"), Extensible: rapid.Bool().Draw(t, "extensible"),
		}
	}), 1, 6).Draw(t, "slots")
}

// The needed pieces may be taken according to table 1, and each indivisible slot is taken once and as a whole. The
// total cost of these pieces is that of the list, and they contain all pieces that were taken (F10).
func TestNeeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := slots(t)
		l := slot.NewList(all)
		l.Record()
		for range rapid.IntRange(0, 10).Draw(t, "tasks") {
			l.Place(0, time.Duration(rapid.IntRange(1, 3).Draw(t, "length"))*h, rapid.IntRange(1, 4).Draw(t, "width"))
		}
		sum, held := 0.0, map[int]int{}
		for _, p := range l.Needed() {
			c, err := all[p.Slot].Cost(p)
			if held[p.Slot]++; err != nil || held[p.Slot] > 1 && !all[p.Slot].Divisible {
				t.Fatalf("%+v of %+v: %v", p, all[p.Slot], err)
			}
			sum += c.Units()
		}
		if got := slot.Cost(l).Units(); got != sum {
			t.Fatalf("it costs %g, and its pieces cost %g", got, sum)
		}
		for _, p := range l.Taken() {
			if !slices.ContainsFunc(l.Needed(), func(q slot.Piece) bool {
				return q.Slot == p.Slot && q.Start <= p.Start && q.End() >= p.End() && q.Processors >= p.Processors
			}) {
				t.Fatalf("%+v is not held by %+v", p, l.Needed())
			}
		}
		l.Reset(func(int) bool { return true })
		if slot.Cost(l) != 0 || len(l.Free(0)) != len(slot.NewList(all).Free(0)) {
			t.Fatalf("after a reset it costs %s, and has %+v", slot.Cost(l), l.Free(0))
		}
	})
}

// An indivisible slot is charged once as a whole, no matter how much of it is used, and several tasks may share it; in
// a divisible slot idle time is not charged (F10).
func TestCostOfAList(t *testing.T) {
	t.Parallel()
	hole := slot.Slot{Length: 6 * h, Processors: 4, Price: 1_000_000}
	edge := slot.Slot{Length: h, Processors: 4, Price: 1_000_000, Divisible: true, Extensible: true, Fee: 7_000_000}
	idle := slot.Slot{Start: 100 * h, Length: h, Processors: 9, Price: 1_000_000}
	l := slot.NewList([]slot.Slot{hole, edge, idle})
	for _, c := range []struct {
		earliest, length time.Duration
		n                int
		start            time.Duration
		cost             float64
	}{
		{0, h, 1, 0, 24},
		{2 * h, 4 * h, 4, 2 * h, 24 + 16 + 7}, // only the other slot has room for it
		{h, 5 * h, 4, h, 24 + 16 + 7},         // beside the first task, and charged with it
		{0, 0, 9, 0, 24 + 16 + 7},             // nothing, at once
		{7 * h, h, 1, 7 * h, 24 + 16 + 7 + 1 + 7},
	} {
		start, ok := l.Place(c.earliest, c.length, c.n)
		if got := slot.Cost(l).Units(); !ok || start != c.start || got != c.cost {
			t.Errorf("%d × %s starts at %s, %v; costs %g, want %s, %g", c.n, c.length, start, ok,
				got, c.start, c.cost)
		}
	}
}
