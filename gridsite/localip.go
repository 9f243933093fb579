package gridsite

import (
	"net"
	"net/netip"
)

// anywhere is an address that no machine has. Its route is the default route.
const anywhere = "192.0.2.1:9"

// LocalIP returns the address of this machine on its default route, or a loopback address if it has no default route.
func LocalIP() netip.Addr { return LocalIPTo(anywhere) }

// LocalIPTo returns the address of this machine on the route to a host:port. It sends nothing.
func LocalIPTo(to string) netip.Addr {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	nc, err := net.Dial("udp", to)
	if err != nil {
		return loopback
	}
	defer nc.Close()
	local, err := netip.ParseAddrPort(nc.LocalAddr().String())
	if err != nil || local.Addr().Zone() != "" { // valid on one link only
		return loopback
	}
	return local.Addr().Unmap()
}
