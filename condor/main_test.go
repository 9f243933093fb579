package condor

import (
	"flag"
	"net/netip"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew, from the real HTCondor")

func freeAddress(t testing.TB) netip.AddrPort {
	t.Helper()
	address, err := FreeAddress(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return address
}
