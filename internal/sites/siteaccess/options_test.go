package siteaccess

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
)

// The error for an invalid option names that option.
func TestBadOptionIsNamed(t *testing.T) {
	t.Parallel()
	site := corral.Site{Batch: "slurm", Contact: "local:", BatchOptions: corral.BatchOptions{SiteOptions: []string{"--nice=1", "--array=1-3"}}}
	err := checkOptions(t.Context(), site, slurm.New(local.Conn{}, t.TempDir()))
	if want := `site_options[1]: "--array=1-3": `; corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("checkOptions = %v, want %s…", err, want)
	}
}

func TestGlideinsOptionsWinOverTheSites(t *testing.T) {
	t.Parallel()
	site := corral.Site{BatchOptions: corral.BatchOptions{Queue: "normal", Account: "physics", Constraint: "fast", SiteOptions: []string{"--nice=1"}}}
	own := corral.BatchOptions{Queue: "long", QOS: "high", SiteOptions: []string{"--nice=2"}}
	got := Options(site, own)
	want := corral.BatchOptions{
		Queue: "long", Account: "physics", QOS: "high", Constraint: "fast", SiteOptions: []string{"--nice=1", "--nice=2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
