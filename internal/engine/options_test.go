package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

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
