package spss

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/ensemble"
)

// For any sequence of planning and undoing, the trees find an offer with the same cost and the same start as the linear
// search.
func TestTreesFindWhatTheSearchFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		e := random(rt)
		r := rules(rt, e)
		r.Strict, r.Tie = false, First
		b := builder{r, newFleet(r), -1}
		for k, w := range e {
			w = b.reserved(w)
			deadlines, ok := Deadlines(w, b.Delay, b.Deadline, b.Alpha)
			ends := make([]time.Duration, len(w.Tasks))
			for _, i := range w.Graph.Order() {
				if !ok {
					break
				}
				n := need{b.Delay, w.Tasks[i].Runtime, deadlines[i]}
				for _, p := range w.Graph.Parents(i) {
					n.earliest = max(n.earliest, ends[p])
				}
				want, got := b.oneByOne(n), b.byTrees(n)
				if !empty(b.plan.machines) && (want.periods != got.periods || want.start != got.start ||
					(want.machine < 0) != (got.machine < 0)) {
					rt.Fatalf("for %+v: %+v, want as good as %+v", n, got, want)
				}
				if rapid.Bool().Draw(rt, "trees") {
					want = got
				}
				ends[i] = want.start + n.takes
				b.plan.put(want, ensemble.Turn{Workflow: k, Task: i, Start: want.start, End: ends[i]})
			}
			if rapid.Bool().Draw(rt, "undo") {
				b.plan.undo()
			} else {
				b.plan.keep()
			}
		}
	})
}

// empty reports whether a machine has only tasks without duration: the search may start a task earlier on such a
// machine, because a whole period remains.
func empty(machines []*machine) bool {
	return slices.ContainsFunc(machines, func(m *machine) bool { return m.start == m.end })
}
