package broker

import (
	"context"
	"net"
	"testing"

	"github.com/corral-pilot/corral"
)

// listen returns the address of a listener that takes connections and says nothing.
func listen(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

// closed returns an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestOneMachineNeedsNoBroker(t *testing.T) {
	t.Parallel()
	collector := listen(t)
	got, err := Negotiate(context.Background(), Config{Collector: collector, CallBack: Reach})
	if err != nil {
		t.Fatal(err)
	}
	if got.Way != corral.BrokerNone || got.Address.String() != "127.0.0.1" || len(got.Measured) != 2 {
		t.Errorf("Negotiate() = %+v, want directly at 127.0.0.1", got)
	}
}
