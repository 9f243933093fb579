package ptrace

import (
	"testing"

	"pgregory.net/rapid"
)

// A child is listed once, regardless of the order in which its first stop, its end and its parent's event are reported,
// and even if one of these is missing.
func TestOrderOfEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := newTree()
		root := tree.begin(1, 0, 0)
		root.told = true
		children := rapid.IntRange(0, 5).Draw(t, "children")
		var left [][]string // :: child − 2 → its remaining events
		var order []int     // children, each once per event
		for c := range children {
			// A child may end before it is seen, and its parent may be killed before its event.
			events := rapid.SampledFrom([][]string{
				{"seen", "told", "ended"}, {"told", "ended"}, {"seen", "ended"}, {"told", "seen", "ended"},
				{"seen", "ended", "told"}, {"ended", "told"}, {"ended"},
			}).Draw(t, "events")
			left = append(left, events)
			for range events {
				order = append(order, c)
			}
		}
		for _, c := range rapid.Permutation(order).Draw(t, "order") {
			what, child := left[c][0], 2+c
			left[c] = left[c][1:]
			switch what {
			case "seen":
				if tree.threads[child] == nil {
					tree.begin(child, 1, 0)
				}
			case "told":
				tree.told(root, child, false, 0)
			case "ended":
				if tree.threads[child] == nil {
					tree.begin(child, 1, 0)
				}
				tree.ended(child, 0)
			}
		}
		if all, more := tree.list(); len(all) != 1+children || more != 0 {
			t.Fatalf("%d processes, want %d: %+v", len(all), 1+children, all)
		}
		if len(tree.procs) != 1 || len(tree.threads) != 1 {
			t.Fatalf("there are still %d processes and %d threads, want the root", len(tree.procs), len(tree.threads))
		}
		tree.ended(1, 0)
		delete(tree.untold, 1)
		if len(tree.untold) != 0 {
			t.Fatalf("%d are waited for whose parent has ended", len(tree.untold))
		}
	})
}
