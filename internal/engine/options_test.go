package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// An option that would be no option is named itself.
func TestBadOptionIsNamed(t *testing.T) {
	t.Parallel()
	conn, err := gridsite.Dial(t.Context(), "local:")
	if err != nil {
		t.Fatal(err)
	}
	pilots, err := gridsite.NewBatch("slurm", conn, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	site := corral.Site{Batch: "slurm", Contact: "local:", BatchOptions: corral.BatchOptions{SiteOptions: []string{"--nice=1", "--array=1-3"}}}
	err = checkOptions(t.Context(), site, pilots)
	if want := `site_options[1]: "--array=1-3": `; corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("checkOptions = %v, want %s…", err, want)
	}
}

func TestGlideinsOptionsWinOverTheSites(t *testing.T) {
	t.Parallel()
	site := corral.Site{BatchOptions: corral.BatchOptions{Queue: "normal", Account: "physics", Constraint: "fast", SiteOptions: []string{"--nice=1"}}}
	own := corral.BatchOptions{Queue: "long", QOS: "high", SiteOptions: []string{"--nice=2"}}
	var got gridsite.JobSpec
	setOptions(&got, site, own)
	want := gridsite.JobSpec{Queue: "long", Account: "physics", QOS: "high", Constraint: "fast", Lines: []string{"--nice=1", "--nice=2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
