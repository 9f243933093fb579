package access

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
)

// Contacts are the hosts to which a central corrald connects for its users. The zero value allows none.
type Contacts struct{ patterns []contact }

// A contact is one pattern for the names or the addresses of hosts, with a port; port 0 matches any port.
type contact struct {
	text      string
	name      string // "*": any; "*.x": names that end with ".x"; else a name. Empty: a pattern of addresses
	addresses netip.Prefix
	port      uint16
}

const sshPort = 22

// ParseContacts reads patterns: NAME, *.DOMAIN, *, an address or ADDRESS/BITS, each with :PORT or :* if the port is not
// 22. An IPv6 address with a port is enclosed in brackets.
func ParseContacts(patterns []string) (c Contacts, err error) {
	for _, text := range patterns {
		p := contact{text: text, port: sshPort}
		host := text
		if before, port, found := strings.Cut(text, "]:"); found { // [ADDRESS]:PORT
			host, err = strings.TrimPrefix(before, "["), p.setPort(port)
		} else if strings.Count(text, ":") == 1 {
			before, port, _ := strings.Cut(text, ":")
			host, err = before, p.setPort(port)
		}
		if err == nil {
			err = p.setHost(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
		}
		if err != nil {
			return c, corral.Errorf(corral.Invalid, "%.80q is not a pattern of contacts: want NAME, *.DOMAIN, *, "+
				"an address or ADDRESS/BITS, with :PORT or :* unless the port is 22", text)
		}
		c.patterns = append(c.patterns, p)
	}
	return c, nil
}

var errPattern = corral.Errorf(corral.Invalid, "not a pattern")

func (p *contact) setPort(port string) error {
	if port == "*" {
		p.port = 0
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return errPattern
	}
	p.port = uint16(n)
	return nil
}

func (p *contact) setHost(host string) error {
	if prefix, err := netip.ParsePrefix(host); err == nil {
		p.addresses = prefix.Masked()
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		p.addresses = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())
		return nil
	}
	p.name = strings.ToLower(host)
	fixed := strings.TrimPrefix(p.name, "*.")
	if p.name != "*" && (fixed == "" || strings.ContainsAny(fixed, "*/:[] \t") || strings.HasPrefix(fixed, ".")) {
		return errPattern
	}
	return nil
}

// names reports whether a pattern of names matches the name by which a user calls a host.
func (p contact) names(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case p.name == "":
		return false
	case p.name == "*":
		return true
	case strings.HasPrefix(p.name, "*."):
		return strings.HasSuffix(host, p.name[1:])
	}
	return host == p.name
}

func (p contact) at(port uint16) bool { return p.port == 0 || p.port == port }

// Allows reports whether corrald may connect to an address to which a host's name was resolved. A pattern of names
// never allows a special address or one of this machine's own; a pattern of addresses allows every address in it.
func (c Contacts) Allows(host string, at netip.AddrPort, own []netip.Addr) bool {
	ip := at.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(c.patterns, func(p contact) bool {
		switch {
		case !p.at(at.Port()):
			return false
		case p.addresses.IsValid():
			return p.addresses.Contains(ip)
		}
		return p.names(host) && !special(ip) && !slices.Contains(own, ip)
	})
}

var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

func special(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
		thisNetwork.Contains(ip)
}

// Check refuses a contact by its text. The address of a name is checked when corrald connects to it.
func (c Contacts) Check(field, host string, port int) error {
	port = cmp.Or(port, sshPort)
	if ip, err := netip.ParseAddr(host); err == nil {
		if c.Allows(host, netip.AddrPortFrom(ip, uint16(port)), nil) {
			return nil
		}
	} else if slices.ContainsFunc(c.patterns, func(p contact) bool {
		return p.at(uint16(port)) && (p.addresses.IsValid() || p.names(host))
	}) {
		return nil
	}
	return corral.ErrorAt(corral.Forbidden, field, "this corrald connects only to %s (--allow-contacts), not to %s: "+
		"name another host, or ask an administrator", c, hostPort(host, port))
}

func (c Contacts) String() string {
	var all []string
	for _, p := range c.patterns {
		all = append(all, p.text)
	}
	return strings.Join(all, ", ")
}

// hostPort formats an address in the usual form: an IPv6 address in brackets.
func hostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}
