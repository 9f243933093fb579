package sim_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// Three pilots of four hours replace each other; they were planned for waits of ten minutes. Whatever the actual wait
// of the first pilot, each following pilot is submitted at the planned interval after the previous start: there is
// never a gap, and two pilots are held at once only for the planned overlap. With fixed submission times there is a
// gap, or two pilots are held at once for as long as the first pilot was late.
func TestFollowersKeepTheirPlace(t *testing.T) {
	t.Parallel()
	const walltime, planned, overlap = 4 * time.Hour, 10 * time.Minute, 2 * time.Minute
	for _, wait := range []time.Duration{0, planned, time.Hour, 3 * time.Hour} {
		for _, follow := range []bool{true, false} {
			x := site(0)
			x.Wait = func(plan.Shape) time.Duration { return planned }
			x.Draw = func(_ plan.Shape, n int) time.Duration { return []time.Duration{wait, planned, planned}[n] }
			var pilots []plan.Pilot
			for n := range 3 {
				q := pilot(1, 1, walltime).Pilot
				if n > 0 {
					before := n - 1
					// The pilot is planned to start n intervals after the first pilot.
					q.Submit = corral.Seconds(time.Duration(n) * (walltime - overlap))
					q.Start = q.Submit + corral.Seconds(planned)
					if follow {
						q.Follows = &before
					}
				} else {
					q.Start = corral.Seconds(planned)
				}
				pilots = append(pilots, q)
			}
			tr := sim.Run(sim.Scenario{Work: work(t, task{estimate: 1000 * time.Hour}), Sites: []sim.Site{x},
				Asks: sim.AsksFor(pilots, 0, 0), Stall: 24 * time.Hour, Horizon: 24 * time.Hour})
			if len(tr.Pilots) != len(pilots) {
				t.Fatalf("wait %s: %d pilots: %+v", wait, len(tr.Pilots), tr.Pilots)
			}
			kept := true
			for n := range tr.Pilots[1:] {
				twice := tr.Pilots[n].End - tr.Pilots[n+1].Start
				kept = kept && twice > 0 && twice <= 2*overlap
			}
			if kept != (follow || wait == planned) {
				t.Errorf("wait %s, they follow %v: the place is kept, and once: %v; %+v", wait, follow, kept, tr.Pilots)
			}
		}
	}
}
