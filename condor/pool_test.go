package condor

import (
	"testing"
)

func TestFreeAddress(t *testing.T) {
	t.Parallel()
	if address := freeAddress(t); address.Port() < firstPort || address.Port() > lastPort {
		t.Errorf("FreeAddress() = %v", address)
	}
	if address, err := FreeAddress(netipAddr("192.0.2.1:1").Addr()); err == nil {
		t.Errorf("FreeAddress() of another machine = %v", address)
	}
}
