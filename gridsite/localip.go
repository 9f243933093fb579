package gridsite

import (
	"net"
	"net/netip"
)

// anywhere is an address that no machine has. The way there is the way to most of the world.
const anywhere = "192.0.2.1:9"

// LocalIP returns the address that this machine has on the way to most of the world; a loopback address if there is
// none.
func LocalIP() netip.Addr { return LocalIPTo(anywhere) }

// LocalIPTo returns the address that this machine has on the way to a host:port. Nothing is sent.
func LocalIPTo(to string) netip.Addr {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	nc, err := net.Dial("udp", to)
	if err != nil {
		return loopback
	}
	defer nc.Close()
	local, err := netip.ParseAddrPort(nc.LocalAddr().String())
	if err != nil || local.Addr().Zone() != "" { // of use on one wire only
		return loopback
	}
	return local.Addr().Unmap()
}
