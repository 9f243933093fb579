//go:build soak

package wfformat_test

import (
	"testing"

	"github.com/corral-pilot/corral/internal/kit/datasets"
)

// All 88 published instances are read with the numbers of their index.
func TestAllPublishedInstances(t *testing.T) {
	t.Parallel()
	checkInstances(t, datasets.Path(t, datasets.Instances), 88)
}
