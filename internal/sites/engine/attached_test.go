package engine

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
)

// The order names the pool's manager, the schedd's address if the schedd is not behind the collector's port, and
// whether the collector relays streams when it is the broker.
func TestOrderDescribesAnAttachedPool(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		attached bool
		schedd   string
		version  string // of the workers; the pool is not older
		ccb      []string
		streams  bool
	}{
		{attached: false, version: "23.9.6"},
		{attached: true, version: "23.9.6", schedd: "s:9618"},
		{attached: true, version: "25.12.0", schedd: "s:9618", streams: true},
		{attached: true, version: "25.14.1", streams: true},
		{attached: true, version: "25.14.1", ccb: []string{"b:9618"}}, // of unknown version
	} {
		need := reconcile.Need{Cluster: corral.Cluster{Name: "theirs", Attached: test.attached, ScheddAt: test.schedd}, Version: test.version}
		got := condorOrder(corral.Site{}, corral.Glidein{CCB: test.ccb}, corral.Job{}, need)
		if got.Attached != test.attached || got.Schedd != test.schedd || got.Streams != test.streams {
			t.Errorf("%+v: the order says %+v", test, got)
		}
	}
}
