package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/resubmit"
)

// A site has only one setup job at a time: a lost package is staged again when the setup job for a glidein's package
// has ended. Until then no attempt is requested, because it would not find its program either.
func TestDecideLostMeanwhile(t *testing.T) {
	t.Parallel()
	embedded := glideinWith(resubmit.Policy{}) // a glidein that wants its first attempt
	embedded.Cluster = 1
	over := staged(digest, corral.OutcomeDone, false)
	for _, tt := range []struct {
		name string
		job  corral.Job
		want []string
	}{
		{"it waits", stagingNow(digest, corral.JobQueued), []string{"settle"}},
		{"it runs", stagingNow(digest, corral.JobRunning), []string{"settle"}},
		{"its submission was never answered", stagingNow(digest, corral.JobNew), []string{"settle", "resume"}},
		{"it is over", over, []string{"settle", "submit setup"}},
	} {
		tt.job.CreatedAt = t0
		w := World{Site: corral.Site{State: corral.SiteReady}, Installed: Installed{Lost: true}, Jobs: []corral.Job{tt.job}, Glideins: []corral.Glidein{embedded}}
		if got := kinds(Decide(t0.Add(time.Minute), w)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: Decide = %q, want %q", tt.name, got, tt.want)
		}
	}
}
