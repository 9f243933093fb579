package sim_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/resubmit"
)

// Pilots follow one another as long as the credential for their site allows: with a login credential until it expires,
// and with a credential that pilots carry until it would expire before the end of the next pilot.
func TestCredentialsExpire(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		carried bool
		want    int // number of pilots of an hour in the first ten hours, at a site without a queue
	}{
		"login":   {false, 5},
		"carried": {true, 4},
	} {
		x := site(0)
		x.Credentials = []credential.Credential{{Kind: credential.X509Proxy, Where: "/proxy", Carried: c.carried,
			NotAfter: begin.Add(4*time.Hour + 30*time.Minute)}}
		a := pilot(1, 1, time.Hour)
		a.Resubmit = resubmit.Policy{Mode: resubmit.Forever}
		tr := sim.Run(sim.Scenario{
			Work: work(t, task{estimate: 1000 * time.Hour}), Sites: []sim.Site{x}, Asks: []sim.Ask{a},
			Begin: begin, Stall: 1000 * time.Hour, Horizon: 10 * time.Hour,
		})
		if len(tr.Pilots) != c.want {
			t.Errorf("%s: %d pilots, want %d: %+v", name, len(tr.Pilots), c.want, tr.Pilots)
		}
	}
}
