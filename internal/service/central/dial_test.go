package central

import (
	"net"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/decide/access"
)

// Listeners on this machine are not reachable by any name or address, unless their address is allowed.
func TestDial(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	own, err := ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"localhost", "127.0.0.1", "127.1.2.3", "::ffff:127.0.0.1", "0.0.0.0"}
	for _, ip := range own {
		hosts = append(hosts, ip.String())
	}
	for _, tt := range []struct {
		patterns []string
		host     string
		want     bool
	}{
		{[]string{"127.0.0.0/8:*"}, "localhost", true},
		{[]string{"127.0.0.1:" + port}, "127.0.0.1", true},
		{[]string{"127.0.0.0/8"}, "127.0.0.1", false}, // only at port 22
	} {
		hosts := []string{tt.host}
		dialled(t, tt.patterns, hosts, port, tt.want)
	}
	dialled(t, []string{"*:*", "localhost:*"}, hosts, port, false)
}

func dialled(t *testing.T, patterns, hosts []string, port string, want bool) {
	t.Helper()
	allowed, err := access.ParseContacts(patterns)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		conn, err := Dial(allowed)(t.Context(), net.JoinHostPort(host, port))
		if conn != nil {
			conn.Close()
		}
		if want != (err == nil) || !want && !strings.Contains(err.Error(), "is not allowed (--allow-contacts") {
			t.Errorf("%q, %s: %v", patterns, host, err)
		}
	}
}
