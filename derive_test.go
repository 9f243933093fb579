package corral_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// TestCurrent: Current compares the recorded state and reason with those of Derive, whatever the glidein's state.
func TestCurrent(t *testing.T) {
	t.Parallel()
	var attempts [][]corral.Job
	for _, first := range corral.JobStates {
		one := corral.Job{Number: 1, State: first, Outcome: corral.OutcomeLost, EndedAt: noon}
		attempts = append(attempts, []corral.Job{one})
		for _, second := range corral.JobStates {
			attempts = append(attempts, []corral.Job{one, {Number: 2, State: second, Outcome: corral.OutcomeIdle, EndedAt: noon}})
		}
	}
	held := corral.Hold{Since: noon, Until: noon.Add(time.Minute), Why: "nothing came of the last attempts"}
	for _, all := range append(attempts, nil) {
		for _, state := range corral.GlideinStates {
			for _, asked := range []corral.Ask{corral.AskNothing, corral.AskCancel} {
				for _, notBefore := range []time.Time{{}, noon.Add(-time.Hour), noon.Add(time.Hour)} {
					for _, follows := range []corral.GlideinID{0, 7} {
						g := corral.Glidein{ID: 8, State: state, Asked: asked, NotBefore: notBefore, Follows: follows,
							Attempts: all, Resubmit: resubmit.Policy{Mode: resubmit.Forever}}
						checkCurrent(t, g, held)
					}
				}
			}
		}
	}
}

// checkCurrent asks for a glidein with the derived reason and with another one, at sites in different states.
func checkCurrent(t *testing.T, g corral.Glidein, held corral.Hold) {
	t.Helper()
	for _, site := range []corral.SiteState{corral.SiteReady, corral.SiteStaging, corral.SiteFailed} {
		for _, hold := range []corral.Hold{{}, held} {
			for _, lack := range []corral.Lack{{}, {Why: "no room"}, {Why: "no package", Final: true}} {
				_, derived := g.Derive(site, hold, lack, noon)
				for _, g.Reason = range []string{derived, "another reason"} {
					state, reason := g.Derive(site, hold, lack, noon) // which keeps the reason of an old verdict
					want := g.State == state && g.Reason == reason
					if got := g.Current(site, hold, lack, noon); got != want {
						t.Fatalf("site %s, %+v, lack %+v, %+v: current %t, want %t: %s, %s", site, hold, lack, g, got, want,
							state, reason)
					}
				}
			}
		}
	}
}
