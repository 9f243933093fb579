package slot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral/plan/slot"
)

const h = time.Hour

// TestFigure1 is the worked example of figure 1 of the thesis: four tasks on five processors leave five slots.
func TestFigure1(t *testing.T) {
	t.Parallel()
	l := slot.Machine(5, 0)
	for _, task := range []struct {
		name   string
		n      int
		length time.Duration
		want   time.Duration
	}{{"A", 2, 3 * h, 0}, {"B", 4, h, 3 * h}, {"C", 1, 2 * h, 0}, {"D", 3, 2 * h, 4 * h}} {
		if start, ok := l.Place(0, task.length, task.n); !ok || start != task.want {
			t.Errorf("%s starts at %s, %v; want %s", task.name, start, ok, task.want)
		}
	}
	bounded := func(start time.Duration, n int, end time.Duration) slot.Slot {
		return slot.Slot{Start: start, Processors: n, Length: end - start}
	}
	open := func(start time.Duration, n int) slot.Slot {
		return slot.Slot{Start: start, Processors: n, Length: 8*h - start, Divisible: true, Extensible: true}
	}
	want := []slot.Slot{bounded(0, 1, 3*h), open(0, 1), bounded(2*h, 1, 3*h), open(4*h, 1), open(6*h, 3)}
	if diff := cmp.Diff(want, l.Free(8*h)); diff != "" {
		t.Errorf("free slots (-want +got):\n%s", diff)
	}
	// A task with two processors and two hours starts at once, on two of the slots.
	if start, ok := l.Find(0, 2*h, 2); !ok || start != 0 {
		t.Errorf("the next one starts at %s, %v", start, ok)
	}
}

// A task whose end would exceed a Duration has no start.
func TestNoEnd(t *testing.T) {
	t.Parallel()
	l := slot.Machine(5, 0)
	if start, ok := l.Find(h, slot.Forever, 1); ok {
		t.Errorf("it starts at %s", start)
	}
	if start, ok := l.Find(slot.Forever-h, 2*h, 1); ok {
		t.Errorf("it starts at %s", start)
	}
}

// TestPinnedPrices is the worked example of prices (Singh 2008, figure 21 and table 3): two processors for three steps,
// while A and B run, R is reserved, and C and D wait. Jobs are pinned to processors as the list carves them, and a fee
// is the additional wait of C and D, times their two processors.
func TestPinnedPrices(t *testing.T) {
	t.Parallel()
	plan := func(at time.Duration) (c, d time.Duration, ok bool) {
		l := slot.Machine(5, 0)
		for _, j := range []struct {
			start, length time.Duration
			n             int
		}{{0, 3, 1}, {0, 2, 3}, {4, 3, 1}, {at, 3, 2}} {
			if j.start < 0 {
				continue
			}
			if start, found := l.Place(j.start*time.Hour, j.length*time.Hour, j.n); !found || start != j.start*time.Hour {
				return 0, 0, false
			}
		}
		c, _ = l.Place(0, 4*time.Hour, 2)
		d, _ = l.Place(0, 5*time.Hour, 2)
		return c / time.Hour, d / time.Hour, true
	}
	c, d, _ := plan(-1)
	if c != 2 || d != 3 {
		t.Errorf("C and D are planned for %d and %d, want 2 and 3", c, d)
	}
	for at, want := range map[time.Duration]time.Duration{0: -1, 2: 6, 3: 8, 4: 10, 6: 0, 7: 0, 8: 0} {
		fee := time.Duration(-1)
		if c2, d2, ok := plan(at); ok {
			fee = 2 * (max(0, c2-c) + max(0, d2-d))
		}
		if fee != want {
			t.Errorf("from %d on it costs %d, want %d", at, fee, want)
		}
	}
}

// A cost is rounded once over all lists: two thirds of two units at two sites cost what they cost at one.
func TestCostOfLists(t *testing.T) {
	t.Parallel()
	list := func(processors int) *slot.List {
		l := slot.NewList([]slot.Slot{{Length: time.Hour, Processors: processors, Price: 1_000_000, Divisible: true}})
		l.Place(0, 40*time.Minute, processors)
		return l
	}
	if one, two := slot.Cost(list(4)), slot.Cost(list(2), list(2)); one != two || one != 2_666_667 {
		t.Errorf("%s at one site, %s at two", one, two)
	}
}
