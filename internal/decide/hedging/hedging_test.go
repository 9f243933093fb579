package hedging_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/hedging"
)

// The glidein of a pair whose workers appear later is withdrawn: it is cancelled if it has not started and drained if
// it has. Before any worker has appeared, and once the winner has left, neither glidein is withdrawn. Revisions count
// the glidein that has workers or, if there is none, the planned one.
func TestHedgesAreWithdrawn(t *testing.T) {
	t.Parallel()
	live := func(workers int) []corral.Job {
		return []corral.Job{{State: corral.JobRunning, Workers: workers, StartedAt: time.Unix(1, 0)}}
	}
	queued := []corral.Job{{State: corral.JobQueued}}
	over := []corral.Job{{State: corral.JobEnded, Workers: 1, EndedAt: time.Unix(1, 0)}}
	for _, tc := range []struct {
		name          string
		first, second corral.Glidein
		goes          corral.GlideinID // the withdrawn glidein; 0: none
		ask           corral.Ask
		uncounted     corral.GlideinID
	}{
		{"both wait", corral.Glidein{}, corral.Glidein{}, 0, "", 2},
		{"the first has come", corral.Glidein{Attempts: live(2)}, corral.Glidein{}, 2, corral.AskCancel, 2},
		{"the second has come", corral.Glidein{Attempts: queued}, corral.Glidein{Attempts: live(1)}, 1, corral.AskCancel, 1},
		{"and the first comes up", corral.Glidein{Attempts: live(0)}, corral.Glidein{Attempts: live(1)}, 1, corral.AskDrain, 1},
		{"both have come", corral.Glidein{Attempts: live(1)}, corral.Glidein{Attempts: live(1)}, 2, corral.AskDrain, 0},
		{"it was asked to go already", corral.Glidein{Attempts: live(1)}, corral.Glidein{Asked: corral.AskCancel}, 0, "", 2},
		{"the first is about to go", corral.Glidein{Attempts: live(1), Asked: corral.AskCancel},
			corral.Glidein{Attempts: live(1)}, 0, "", 0},
		{"it has failed already", corral.Glidein{Attempts: live(1)}, corral.Glidein{State: corral.GlideinFailed}, 0, "", 0},
		{"the first has ended", corral.Glidein{State: corral.GlideinFinished, Attempts: over}, corral.Glidein{}, 0, "", 0},
		{"and the second has come", corral.Glidein{State: corral.GlideinFinished, Attempts: over},
			corral.Glidein{Attempts: live(1)}, 0, "", 0},
	} {
		tc.first.ID, tc.first.Labels = 1, map[string]string{"pilot": "0"}
		tc.second.ID, tc.second.Labels = 2, map[string]string{"pilot": "1", hedging.Label: "0"}
		all := []corral.Glidein{tc.first, tc.second, {ID: 3}} // the third is not part of the plan
		got := hedging.Withdrawals(all)
		if tc.goes == 0 && len(got) > 0 || tc.goes != 0 && (len(got) != 1 || got[0].Glidein != tc.goes || got[0].Ask != tc.ask) {
			t.Errorf("%s: %+v", tc.name, got)
		}
		uncounted := hedging.Uncounted(all)
		for id := corral.GlideinID(1); id <= 3; id++ {
			if uncounted[id] != (id == tc.uncounted) {
				t.Errorf("%s: glidein %d is left out: %t", tc.name, id, uncounted[id])
			}
		}
	}
}
