package broker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
)

// listen returns the address of a listener that accepts connections and sends nothing.
func listen(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

// closed returns an address at which no program can listen until the test ends, because a socket is bound to it.
func closed(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", at.(*syscall.SockaddrInet4).Port)
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

// A name service that fails says nothing about the pool.
func TestTroubleOfNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "c", IsNotFound: true}, unknownName},
		{&net.DNSError{Err: "server misbehaving", Name: "c", IsTemporary: true}, "looking up its name: server misbehaving"},
		{&net.DNSError{UnwrapErr: os.NewSyscallError("read", syscall.ECONNREFUSED), Err: "connection refused", Name: "c"}, "looking up its name: connection refused"},
		{&net.DNSError{Err: "i/o timeout", Name: "c", IsTimeout: true}, "looking up its name: i/o timeout"},
	} {
		got := trouble(fmt.Errorf("dial: %w", tt.err))
		if passes := (Target{Trouble: got}).mayPass(); got != tt.want || passes != (tt.want != unknownName) {
			t.Errorf("trouble(%v) = %q, may pass %v; want %q", tt.err, got, passes, tt.want)
		}
	}
}

// The worker must use the address of the collector that was reached, and no other address of its name.
func TestChoiceNamesTheCollectorThatAnswered(t *testing.T) {
	t.Parallel()
	collector := listen(t)
	_, port, err := net.SplitHostPort(collector)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Negotiate(context.Background(), Config{Collector: "localhost:" + port})
	if err != nil || got.Collector.String() != collector || got.Address != got.Collector.Addr() {
		t.Errorf("Negotiate() = %+v, %v, want the collector at %s", got, err, collector)
	}
}

// A site may admit connections at some ports only; a measurement at another port would prove nothing.
func TestNodeIsDialledAtThePortsOfItsSite(t *testing.T) {
	t.Parallel()
	taken, err := netip.ParseAddrPort(listen(t))
	if err != nil {
		t.Fatal(err)
	}
	first := taken.Port()
	for name, ports := range map[string][2]uint16{"some are free": {first - 200, first}, "none is free": {first, first}} {
		var asked []string
		c := Config{Collector: listen(t), Ports: ports, CallBack: func(ctx context.Context, addresses []string, nonce string) (string, error) {
			asked = addresses
			return Reach(ctx, addresses, nonce)
		}}
		got, err := Negotiate(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range asked {
			if ap, err := netip.ParseAddrPort(address); err != nil || ap.Port() < ports[0] || ap.Port() > ports[1] {
				t.Errorf("%s: dialled at %s (%v), want a port of %d", name, address, err, ports)
			}
		}
		if name == "none is free" {
			if want := fmt.Sprintf("no port from %d to %d is free", first, first); got.Way != corral.BrokerCCB || !strings.Contains(got.Reason, want) {
				t.Errorf("%s: %+v, want CCB as %s", name, got, want)
			}
		} else if got.Way != corral.BrokerNone || len(asked) == 0 {
			t.Errorf("%s: %+v, want directly", name, got)
		}
	}
}
