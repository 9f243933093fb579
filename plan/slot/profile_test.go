package slot_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/slot"
)

const hour = time.Hour

// TestFitsOneAfterTheOther places four jobs one after another at the earliest instant at which they fit, as
// conservative backfilling does (Singh, 2008, figure 1): on a machine with 5 processors, A needs 2 for 3 hours, B needs
// 4 for 1 hour, C needs 1 for 2 hours, and D needs 3 for 2 hours.
func TestFitsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	p := slot.NewProfile(5, 0)
	for i, j := range []struct {
		n            int
		length, want time.Duration
	}{{2, 3 * hour, 0}, {4, hour, 3 * hour}, {1, 2 * hour, 0}, {3, 2 * hour, 4 * hour}} {
		at, ok := p.Fit(0, j.length, j.n)
		if !ok || at != j.want {
			t.Errorf("job %d fits at %s, %t; want %s", i, at, ok, j.want)
		}
		p.Take(at, at+j.length, j.n)
	}
	var steps []any
	for at, free := range p.Steps() {
		steps = append(steps, int(at/hour), free)
	}
	want := []any{0, 2, 2, 3, 3, 1, 4, 2, 6, 5}
	if len(steps) != len(want) {
		t.Fatalf("steps %v, want %v", steps, want)
	}
	for i := range want {
		if steps[i] != want[i] {
			t.Fatalf("steps %v, want %v", steps, want)
		}
	}
}

// Two processors are free for two hours, then none for one hour, then two again. A job of one hour that has to start
// after the busy hour is submitted when it no longer fits before that hour; a job that has to start within a free
// period is submitted when it has to start.
func TestArrival(t *testing.T) {
	t.Parallel()
	p := slot.NewProfile(2, 5*hour)
	p.Take(7*hour, 8*hour, 1)
	p = p.From(5 * hour)
	for _, tc := range []struct {
		at, length time.Duration
		n          int
		want       time.Duration
	}{
		{0, hour, 2, 0}, {3 * hour, hour, 2, hour + time.Millisecond}, {3 * hour, 3 * hour, 2, 0},
		{hour, hour, 2, hour}, {3 * hour, hour, 1, 3 * hour}, {4 * hour, hour, 2, 4 * hour},
	} {
		if got := p.Arrival(tc.at, tc.length, tc.n); got != tc.want {
			t.Errorf("%d for %s at %s: comes at %s, want %s", tc.n, tc.length, tc.at, got, tc.want)
		}
	}
}

// On a machine with four processors, three of which are taken for an hour, one is free in a profile limited to two.
func TestAtMost(t *testing.T) {
	t.Parallel()
	p := slot.NewProfile(4, 0)
	p.Take(hour, 2*hour, 3)
	p.Take(3*hour, 4*hour, 1)
	p = p.AtMost(2)
	var steps []int
	for at, free := range p.Steps() {
		steps = append(steps, int(at/hour), free)
	}
	if want := []int{0, 2, 1, 1, 2, 2}; !slices.Equal(steps, want) || p.Processors() != 2 {
		t.Errorf("%v of %d, want %v of 2", steps, p.Processors(), want)
	}
}

// A job that fits at an instant starts then if it is submitted at Arrival or later, and starts earlier if it is
// submitted before Arrival.
func TestArrivalIsTheEarliest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := slot.NewProfile(4, 0)
		for range rapid.IntRange(0, 6).Draw(t, "jobs") {
			n, length := rapid.IntRange(1, 4).Draw(t, "n"), time.Duration(rapid.IntRange(1, 5).Draw(t, "length"))*hour
			from := time.Duration(rapid.IntRange(0, 12).Draw(t, "from")) * hour
			if at, ok := p.Fit(from, length, n); ok {
				p.Take(at, at+length, n)
			}
		}
		n, length := rapid.IntRange(1, 4).Draw(t, "of"), time.Duration(rapid.IntRange(1, 5).Draw(t, "for"))*hour
		at, ok := p.Fit(time.Duration(rapid.IntRange(0, 20).Draw(t, "at"))*hour, length, n)
		if !ok {
			return
		}
		came := p.Arrival(at, length, n)
		if start, _ := p.Fit(came, length, n); came > at || start != at {
			t.Fatalf("it comes at %s, to start at %s, and starts at %s", came, at, start)
		}
		if came == 0 {
			return
		}
		if start, _ := p.Fit(came-time.Millisecond, length, n); start == at {
			t.Fatalf("it comes at %s, and might come earlier", came)
		}
	})
}

// There is no room behind a reservation without end.
func TestNothingFitsBehindForever(t *testing.T) {
	t.Parallel()
	p := slot.NewProfile(4, hour)
	p.Take(2*hour, slot.Forever, 3)
	if at, ok := p.Fit(0, hour, 4); !ok || at != hour {
		t.Errorf("4 processors for an hour: %s, %t; want those before the others are taken", at, ok)
	}
	if at, ok := p.Fit(0, 2*hour, 2); ok {
		t.Errorf("2 processors for 2 hours: %s; 1 is left by then", at)
	}
	if at, ok := p.Fit(3*hour, slot.Forever, 1); !ok || at != 3*hour {
		t.Errorf("1 processor forever: %s, %t", at, ok)
	}
	if _, ok := p.Fit(0, hour, 5); ok {
		t.Error("5 of 4 processors fit")
	}
}

// A profile behaves like an array of instants under any sequence of Take, Give and Forget.
func TestProfileIsAnArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 40
		processors := rapid.IntRange(1, 6).Draw(t, "processors")
		p, free := slot.NewProfile(processors, 0), [end]int{}
		for i := range free {
			free[i] = processors
		}
		type taken struct{ from, to, n int }
		var held []taken
		forgotten := 0
		for range rapid.IntRange(0, 25).Draw(t, "changes") {
			number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
			length, n := number("length", 1, 8), number("n", 1, processors)
			from := number("from", forgotten, end-9)
			switch number("change", 0, 3) {
			case 0, 1:
				at, ok := p.Fit(time.Duration(from), time.Duration(length), n)
				want := from
				for k := 0; k < length && want+length <= end; k++ {
					if free[want+k] < n {
						want, k = want+k+1, -1
					}
				}
				if want+length > end { // beyond the array all processors are or become free
					break
				}
				if !ok || int(at) != want {
					t.Fatalf("%d processors for %d from %d: %d, %t; want %d of %v", n, length, from, at, ok, want, free)
				}
				p.Take(at, at+time.Duration(length), n)
				for k := range length {
					free[want+k] -= n
				}
				held = append(held, taken{want, want + length, n})
			case 2:
				if len(held) > 0 {
					h := held[len(held)-1]
					held = held[:len(held)-1]
					h.from = max(h.from, forgotten)
					p.Give(time.Duration(h.from), time.Duration(max(h.from, h.to)), h.n)
					for k := h.from; k < h.to; k++ {
						free[k] += h.n
					}
				}
			case 3:
				forgotten = max(forgotten, number("forgotten", 0, 10))
				p.Forget(time.Duration(forgotten))
			}
			least := processors
			from = max(from, forgotten)
			for k := from; k < from+length; k++ {
				least = min(least, free[k])
			}
			if got := p.Least(time.Duration(from), time.Duration(from+length)); got != least {
				t.Fatalf("from %d for %d at least %d are free, want %d of %v", from, length, got, least, free)
			}
			before := -1
			for at, n := range p.Clone().Steps() {
				if n == before || n < 0 || n > processors || at < time.Duration(forgotten) {
					t.Fatalf("step at %d of %d processors behind one of %d", at, n, before)
				}
				before = n
			}
		}
		for k := forgotten; k < end; k++ {
			if got := p.Free(time.Duration(k)); got != free[k] {
				t.Fatalf("at %d %d are free, want %d", k, got, free[k])
			}
		}
	})
}
