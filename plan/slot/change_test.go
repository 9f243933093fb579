package slot_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/slot"
)

// Many changes at once are the same as one after the other.
func TestWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := slot.NewProfile(8, time.Duration(rapid.IntRange(0, 3).Draw(t, "from")))
		one := p.Clone()
		var changes []slot.Change
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			from := time.Duration(rapid.IntRange(0, 9).Draw(t, "start"))
			to := from + time.Duration(rapid.IntRange(0, 6).Draw(t, "length"))
			if rapid.IntRange(0, 9).Draw(t, "open") == 0 {
				to = slot.Forever
			}
			n := min(rapid.IntRange(0, 3).Draw(t, "n"), one.Least(from, to))
			one.Take(from, to, n)
			changes = append(changes, slot.Change{From: from, To: to, Free: -n})
		}
		same(t, p.With(changes), one)
		for i := range changes {
			changes[i].Free *= -1
		}
		same(t, one.With(changes), p)
	})
}

func same(t *rapid.T, got, want *slot.Profile) {
	steps := func(p *slot.Profile) (all []int) {
		for at, free := range p.Steps() {
			all = append(all, int(at), free)
		}
		return all
	}
	if a, b := steps(got), steps(want); !slices.Equal(a, b) {
		t.Fatalf("%v, want %v", a, b)
	}
}
