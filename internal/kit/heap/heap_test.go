package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Items are removed in sorted order, regardless of other removals in between.
func TestItemsComeOutSorted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, left := Ordered[int](), []int(nil)
		for range rapid.IntRange(0, 50).Draw(rt, "steps") {
			if h.Len() > 0 && rapid.Bool().Draw(rt, "pop") {
				if got, want := h.First(), slices.Min(left); got != want || h.Pop() != want {
					rt.Fatalf("%d comes out, want %d of %d", got, want, left)
				}
				left = slices.Delete(left, slices.Index(left, slices.Min(left)), slices.Index(left, slices.Min(left))+1)
			} else {
				x := rapid.IntRange(0, 9).Draw(rt, "x")
				h.Push(x)
				left = append(left, x)
			}
			if h.Len() != len(left) {
				rt.Fatalf("%d values, want %d", h.Len(), len(left))
			}
		}
	})
}
