package sim_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/resubmit"
)

// Overlapping pilots follow each other without a gap as long as no pilot waits longer than nine in ten of the earlier
// pilots did; for any waits, there are never more than two pilots at once.
func TestOverlap(t *testing.T) {
	t.Parallel()
	endless := work(t, task{estimate: 1000 * time.Hour})
	rapid.Check(t, func(t *rapid.T) {
		walltime := time.Duration(rapid.IntRange(120, 7200).Draw(t, "walltime")) * time.Second
		overlap := time.Duration(rapid.IntRange(5, 60).Draw(t, "overlap")) * time.Second
		longest := time.Duration(rapid.IntRange(0, 2*int(walltime/time.Second)).Draw(t, "longest wait")) * time.Second
		var waits []time.Duration
		x := site(0)
		x.Draw = func(_ plan.Shape, n int) time.Duration {
			for len(waits) <= n {
				waits = append(waits, time.Duration(rapid.Int64Range(0, int64(longest)).Draw(t, fmt.Sprint("wait ", len(waits)))).Truncate(time.Second))
			}
			return waits[n]
		}
		a := pilot(1, 1, walltime)
		a.Overlap, a.Resubmit = overlap, resubmit.Policy{Mode: resubmit.Times, Limit: 12}
		tr := sim.Run(sim.Scenario{
			Work: endless, Sites: []sim.Site{x}, Asks: []sim.Ask{a},
			Stall: 10000 * time.Hour, Horizon: 13 * (walltime + longest),
		})
		leaves := matching.CutAfter(walltime - jobfiles.Reserve(walltime))
		for i, h := range tr.Pilots {
			if i >= 2 && h.Submit < tr.Pilots[i-2].End {
				t.Fatalf("pilot %d is submitted at %s, when two before it are alive: %+v", i+1, h.Submit, tr.Pilots)
			}
			if i == 0 || h.Start < 0 {
				continue
			}
			before := tr.Pilots[i-1]
			begun := before.Start
			if i >= 2 {
				begun = max(begun, tr.Pilots[i-2].End)
			}
			var past []corral.Wait
			for _, p := range tr.Pilots[:i] {
				past = append(past, corral.Wait{SubmittedAt: tr.Begin.Add(p.Submit), StartedAt: tr.Begin.Add(p.Start)})
			}
			expected := time.Duration(queueing.Quantile(past, 0.9, tr.Begin).Wait)
			// A pilot that waits longer than a walltime cannot be submitted early enough.
			if h.Start-h.Submit > expected || before.Start+leaves-overlap-expected < begun {
				continue
			}
			if by := before.Start + leaves - overlap; h.Start > by+time.Second {
				t.Fatalf("pilot %d waits %s, no longer than the %s expected, and starts at %s; want it by %s: %+v",
					i+1, h.Start-h.Submit, expected, h.Start, by, tr.Pilots)
			}
		}
	})
}
