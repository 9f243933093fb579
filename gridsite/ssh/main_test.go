package ssh_test

import (
	"testing"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

func TestMain(m *testing.M) {
	gridsitetest.Main(m, func() error { return nil })
}
