package slurm_test

import (
	"testing"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// atEnd releases the resources that tests of sites share.
var atEnd = func() error { return nil }

func TestMain(m *testing.M) {
	gridsitetest.Main(m, func() error { return atEnd() })
}
