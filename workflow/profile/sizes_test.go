package profile_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/workflow/profile"
)

// A sized task is one that has ended, or was killed if a limit is given.
type sizedTask struct {
	needed, limit, times int
	again                bool // it was killed before
}

func sizesOf(tasks []sizedTask) (s profile.Sizes) {
	for _, t := range tasks {
		for range max(1, t.times) {
			if t.limit > 0 {
				s.Killed(t.limit, t.again)
			} else {
				s.Ended(t.needed, t.again)
			}
		}
	}
	return s
}

// Sizes of a class, a quarter of an octave, have the same top: 256, 305, 363, 431, 512.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		tasks       []sizedTask
		least       int
		start, next int
	}{
		{"nothing is known", nil, 100, 100, 0},
		{"none was killed", []sizedTask{{needed: 300, times: 9}}, 100, 100, 305},
		{"the first was killed", []sizedTask{{limit: 100}}, 100, 200, 200},
		{"two were killed, at different limits", []sizedTask{{limit: 100}, {limit: 150}}, 100, 300, 300},
		{"one was killed twice", []sizedTask{{limit: 100}, {limit: 200, again: true}}, 100, 400, 400},
		{"and has ended", []sizedTask{{limit: 100}, {limit: 200, again: true}, {needed: 300, again: true}}, 100, 305, 305},
		{"the workflow requests more", []sizedTask{{limit: 100}, {needed: 300, again: true}}, 500, 500, 305},
		{"a tenth was killed", []sizedTask{{needed: 90, times: 9}, {limit: 100}}, 100, 100, 200},
		{"a third was killed", []sizedTask{{needed: 90, times: 2}, {limit: 100}}, 100, 200, 200},
		{"one needs far more than all others", []sizedTask{{needed: 90, times: 99}, {limit: 100}, {needed: 10_000, again: true}}, 100,
			100, 11_586},
		{"most need a middle size", []sizedTask{{limit: 100}, {needed: 300, again: true}, {needed: 300, times: 40},
			{limit: 305}, {needed: 3000, again: true}}, 100, 305, 3445},
		{"more than was ever enough", []sizedTask{{limit: 100}, {needed: 300, again: true}, {limit: 400}}, 100, 800, 800},
		{"a measured need of nothing", []sizedTask{{needed: 0}, {limit: 1}}, 1, 2, 2},
		{"limits beyond all machines", []sizedTask{{limit: math.MaxInt}}, 1, 1 << 41, 1 << 41},
	} {
		s := sizesOf(c.tasks)
		if start, next := s.Start(c.least), s.Next(); start != c.start || next != c.next {
			t.Errorf("%s: start %d, next %d, want %d and %d", c.name, start, next, c.start, c.next)
		}
	}
}

// The next task gets at least what the workflow requests. A task that is tried again gets more than any task has
// exceeded, and so it ends after a few attempts.
func TestSizesGrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s profile.Sizes
		asked := rapid.IntRange(1, 1000).Draw(t, "asked")
		for range rapid.IntRange(1, 20).Draw(t, "tasks") {
			needs := rapid.IntRange(1, 100_000).Draw(t, "needs")
			limit := s.Start(asked)
			if limit < asked {
				t.Fatalf("%d MiB, but the workflow requests %d", limit, asked)
			}
			kills := 0
			for ; limit < needs; kills++ {
				s.Killed(limit, kills > 0)
				if next := s.Next(); next <= limit || kills > 20 {
					t.Fatalf("%d MiB after %d", next, limit)
				} else {
					limit = next
				}
			}
			s.Ended(needs, kills > 0)
		}
	})
}
