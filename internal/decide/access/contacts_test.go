package access

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
)

func contacts(t testing.TB, patterns ...string) Contacts {
	t.Helper()
	c, err := ParseContacts(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var ownAddresses = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}

// By default corrald connects to other machines, at port 22. A pattern of names never allows corrald's own machine,
// whatever the name resolves to; a pattern of addresses allows every address in it.
func TestContacts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns []string
		host, at string
		want     bool
	}{
		{[]string{"*"}, "login.example.org", "192.0.2.7:22", true},
		{[]string{"*"}, "login.example.org", "192.168.1.7:22", true},
		{[]string{"*"}, "login.example.org", "[2001:db8::7]:22", true},
		{[]string{"*"}, "login.example.org", "192.0.2.7:2222", false},
		{[]string{"*:*"}, "login.example.org", "192.0.2.7:2222", true},
		{[]string{"*"}, "localhost", "127.0.0.1:22", false},
		{[]string{"*"}, "evil.example.org", "127.9.9.9:22", false},
		{[]string{"*"}, "evil.example.org", "[::1]:22", false},
		{[]string{"*"}, "evil.example.org", "[::ffff:127.0.0.1]:22", false},
		{[]string{"*"}, "evil.example.org", "169.254.169.254:22", false},
		{[]string{"*"}, "evil.example.org", "[fe80::1%eth0]:22", false},
		{[]string{"*"}, "evil.example.org", "0.0.0.0:22", false},
		{[]string{"*"}, "evil.example.org", "0.1.2.3:22", false},
		{[]string{"*"}, "evil.example.org", "[::]:22", false},
		{[]string{"*"}, "evil.example.org", "224.0.0.1:22", false},
		{[]string{"*"}, "evil.example.org", "10.0.0.1:22", false},
		{[]string{"*"}, "evil.example.org", "[2001:db8::1]:22", false},
		{[]string{"*", "10.0.0.1"}, "corral.example.org", "10.0.0.1:22", true},
		{[]string{"127.0.0.0/8:*"}, "localhost", "127.0.0.1:2222", true},
		{[]string{"[::1]:2222"}, "localhost", "[::1]:2222", true},
		{[]string{"[2001:db8::/32]:2222"}, "x", "[2001:db8:7::1]:2222", true},
		{[]string{"2001:db8::/32"}, "x", "[2001:db8:7::1]:22", true},
		{[]string{"192.0.2.0/24"}, "login.example.org", "192.0.2.7:22", true},
		{[]string{"192.0.2.0/24"}, "login.example.org", "192.0.3.7:22", false},
		{[]string{"*.example.org"}, "Login.Example.ORG.", "192.0.2.7:22", true},
		{[]string{"*.example.org"}, "example.org", "192.0.2.7:22", false},
		{[]string{"*.example.org"}, "evilexample.org", "192.0.2.7:22", false},
		{[]string{"login.example.org:2222"}, "login.example.org", "192.0.2.7:2222", true},
		{[]string{"login.example.org:2222"}, "login.example.org", "192.0.2.7:22", false},
		{nil, "login.example.org", "192.0.2.7:22", false},
	} {
		got := contacts(t, tt.patterns...).Allows(tt.host, netip.MustParseAddrPort(tt.at), ownAddresses)
		if got != tt.want {
			t.Errorf("%q for %s at %s: %v", tt.patterns, tt.host, tt.at, got)
		}
	}
}

func TestContactsThatAreNotPatterns(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "*.", "a*b", "a:0", "a:x", "a:70000", "192.0.2.0/40", "a/8", "ssh://a", "a b", "*.*.org", "[::1]:"} {
		c, err := ParseContacts([]string{text})
		if corral.KindOf(err) != corral.Invalid {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
}

// A contact that its text alone shows to be disallowed is refused with the name of the setting; a name that might
// resolve to any address is not.
func TestContactsOfRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns []string
		host     string
		port     int
		want     corral.Kind
	}{
		{[]string{"*"}, "login.example.org", 0, ""},
		{[]string{"*"}, "localhost", 22, ""}, // refused when it is dialled
		{[]string{"*"}, "127.0.0.1", 0, corral.Forbidden},
		{[]string{"*"}, "169.254.169.254", 22, corral.Forbidden},
		{[]string{"*"}, "::1", 22, corral.Forbidden},
		{[]string{"*"}, "login.example.org", 80, corral.Forbidden},
		{[]string{"*.example.org"}, "login.example.com", 0, corral.Forbidden},
		{[]string{"192.0.2.0/24"}, "login.example.com", 0, ""},
	} {
		if err := contacts(t, tt.patterns...).Check("contact", tt.host, tt.port); corral.KindOf(err) != tt.want {
			t.Errorf("%q for %s:%d: %v", tt.patterns, tt.host, tt.port, err)
		}
	}
}

// Patterns of names never allow corrald's own machine, under any name or port.
func TestNamesNeverOpenOwnAddresses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, err := ParseContacts(rapid.SliceOf(rapid.SampledFrom([]string{"*", "*:*", "*.org", "x.org:*", "localhost:*"})).Draw(t, "patterns"))
		if err != nil {
			t.Fatal(err)
		}
		ip := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) netip.Addr {
				b := rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, "loopback")
				return netip.AddrFrom4([4]byte{127, b[0], b[1], b[2]})
			}),
			rapid.SampledFrom(ownAddresses), rapid.Just(netip.IPv6LinkLocalAllNodes()), rapid.Just(netip.IPv6Unspecified())).Draw(t, "ip")
		if rapid.Bool().Draw(t, "mapped") && ip.Is4() {
			ip = netip.AddrFrom16(ip.As16())
		}
		host := rapid.SampledFrom([]string{"localhost", "x.org", "127.0.0.1", "y"}).Draw(t, "host")
		if c.Allows(host, netip.AddrPortFrom(ip, rapid.Uint16().Draw(t, "port")), ownAddresses) {
			t.Fatalf("%v opens %s by the name %s", c, ip, host)
		}
	})
}
