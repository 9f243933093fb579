package execution

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSizingIsUpToDate: the sizes that a sizing keeps are those of profile.Sizes, and update reports each change of a
// size that a task has got.
func TestSizingIsUpToDate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &sizing{}
		got, next := map[int]int{}, 0 // :: least memory → first size that a task has got
		most := rapid.SampledFrom([]int{3, 3 * mostStarts}).Draw(t, "requests")
		t.Repeat(map[string]func(*rapid.T){
			"start": func(t *rapid.T) {
				if s.lowest > 0 {
					least := 100 + rapid.IntRange(1, most).Draw(t, "request")
					if got[least] = s.start(least); got[least] != s.sizes.Start(least) {
						t.Fatalf("from %d: %d, want %d", least, got[least], s.sizes.Start(least))
					}
				}
			},
			"end": func(t *rapid.T) {
				mib := rapid.IntRange(50, 400).Draw(t, "size")
				lower := false
				if rapid.Bool().Draw(t, "killed") {
					s.sizes.Killed(mib, false)
					lower = s.lowest == 0 || mib < s.lowest
					if lower {
						s.lowest = mib
					}
				} else {
					s.sizes.Ended(mib, false)
				}
				changed := s.update() || lower
				if s.lowest > 0 && s.next != s.sizes.Next() || s.next != next && !changed {
					t.Fatalf("next is %d after %d, want %d; changed %t", s.next, next, s.sizes.Next(), changed)
				}
				next = s.next
				for least, was := range got {
					if now := s.sizes.Start(least); now != was && !changed {
						t.Fatalf("from %d: %d after %d, and no change", least, now, was)
					}
				}
				if changed {
					clear(got) // waiting jobs are examined
				}
			},
		})
	})
}
