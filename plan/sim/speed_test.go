package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim"
)

// A task of 50 min takes 100 min at a site whose speed is 0.5. Its pilot leaves after an hour, so that the task waits for
// a pilot at a fast site, while shorter tasks run on the slow one. A clustered job of three tasks also counts for twice
// its estimate.
func TestSlowSiteCutsNoTask(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	slow, fast := site(0), site(20*m)
	slow.Name, slow.Speed = "slow", 0.5
	at := func(name string, walltime time.Duration) sim.Ask {
		a := pilot(1, 1, walltime)
		a.Site = name
		return a
	}
	single := work(t, task{50 * m, nil})
	both := work(t, task{50 * m, nil}, task{10 * m, nil}, task{10 * m, nil})
	grouped := work(t, task{10 * m, nil}, task{10 * m, nil}, task{20 * m, nil})
	grouped.Clusters = [][]int{{0, 1, 2}}
	for _, tt := range []struct {
		name string
		sim.Scenario
		want []string
	}{
		{"a task", sim.Scenario{Work: single}, []string{
			"t0.1 host 0 1210-4210 done",
			"pilot 1.1 asked 0 start 0 ready 10 end 3538 expired",
			"pilot 2.1 asked 0 start 1200 ready 1210 end 4210 removed", "done"}},
		{"a task and shorter ones", sim.Scenario{Work: both}, []string{
			"t1.1 host 0 10-1210 done", "t2.1 host 0 1210-2410 done", "t0.1 host 0 1210-4210 done",
			"pilot 1.1 asked 0 start 0 ready 10 end 3538 expired",
			"pilot 2.1 asked 0 start 1200 ready 1210 end 4210 removed", "done"}},
		{"a clustered job", sim.Scenario{Work: grouped}, []string{
			"t0.1 host 0 1210-1810 done", "t1.1 host 0 1810-2410 done", "t2.1 host 0 2410-3610 done",
			"pilot 1.1 asked 0 start 0 ready 10 end 3538 expired",
			"pilot 2.1 asked 0 start 1200 ready 1210 end 3610 removed", "done"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.Sites, tt.Asks = []sim.Site{slow, fast}, []sim.Ask{at("slow", time.Hour), at("hpc", 2*time.Hour)}
			tr := sim.Run(tt.Scenario)
			if got := life(tr); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A pilot that no plan requested does not tell a speed: its workers are given tasks that they cut off, as in production.
func TestPresentPilotIsMatchedByTheSpeedThatItTold(t *testing.T) {
	t.Parallel()
	slow, fast := site(0), site(0)
	slow.Name, slow.Speed, slow.Overhead = "slow", 0.5, 0
	for told, want := range map[corral.Speed]string{0: "t0.1 host 0 0-3600 cut", 0.5: "t0.1 host 0 10-3010 done"} {
		here := pilot(1, 1, sim.WalltimeFor(time.Hour))
		here.Site, here.Past = "slow", &sim.Past{Until: time.Hour, Speed: told}
		tr := sim.Run(sim.Scenario{Work: work(t, task{50 * time.Minute, nil}), Sites: []sim.Site{slow, fast},
			Asks: []sim.Ask{here, pilot(1, 1, 2*time.Hour)}})
		if got := life(tr)[0]; got != want {
			t.Errorf("told %v: %q, want %q", told, got, want)
		}
	}
}
