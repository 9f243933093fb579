package api_test

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A user who waits for a site sees the reason why corrald cannot use the site.
func TestSiteProgress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason  string
		trouble corral.SiteTrouble
		want    string
	}{
		{"", corral.SiteTrouble{}, "site hpc is STAGING"},
		{"the site is new", corral.SiteTrouble{}, "site hpc is STAGING (the site is new)"},
		{"", corral.SiteTrouble{Why: "no route"}, "site hpc is STAGING (unreachable: no route)"},
		{"the site is new", corral.SiteTrouble{LoginNeeded: true, Why: "one-time code"}, "site hpc is STAGING (the site is new; login needed: one-time code)"},
	} {
		s := corral.Site{Name: "hpc", State: corral.SiteStaging, Reason: tt.reason, Trouble: tt.trouble}
		if got := (api.Until{"READY"}).Site(s).Is; got != tt.want {
			t.Errorf("with reason %q and %+v: %q, want %q", tt.reason, tt.trouble, got, tt.want)
		}
	}
}
