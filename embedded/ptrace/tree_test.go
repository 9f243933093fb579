package ptrace

import (
	"testing"

	"pgregory.net/rapid"
)

// Whichever of a child's first stop, its end and its parent's word comes first, and whichever of them is missing, the
// child is listed once.
func TestOrderOfEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := newTree()
		root := tree.begin(1, 0, 0)
		root.told = true
		children := rapid.IntRange(0, 5).Draw(t, "children")
		var left [][]string // :: child − 2 → what is to be told of it
		var order []int     // children, each as often as something is told of it
		for c := range children {
			// A child may not be seen at all before it has ended, and its parent may be killed before it tells.
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
