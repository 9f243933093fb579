package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/access"
)

// corrald supports exactly the batch systems that are listed for users.
func TestEveryBatchSystemIsWired(t *testing.T) {
	t.Parallel()
	wired := slices.Sorted(maps.Keys(backends(nil, "", access.Contacts{}).Dialects))
	if diff := cmp.Diff(slices.Sorted(slices.Values(corral.BatchSystemNames())), wired); diff != "" {
		t.Errorf("corral.BatchSystems and backends differ (-table +wired):\n%s", diff)
	}
}
