package central

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/corral-pilot/corral/internal/decide/access"
)

// Dial returns the function by which corrald connects to the hosts of its users' sites, restricted to the allowed
// ones. Names are checked after resolution, when the socket is about to connect, so the checked address is the one
// used.
func Dial(allowed access.Contacts) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
			own, err := ownAddresses()
			if err != nil {
				return err
			}
			to, err := netip.ParseAddrPort(at)
			if err != nil {
				return err
			}
			if !allowed.Allows(host, to, own) {
				return fmt.Errorf("%s is not allowed (--allow-contacts %s)", at, allowed)
			}
			return nil
		}}
		return d.DialContext(ctx, "tcp", address)
	}
}

// ownAddresses returns this machine's present addresses.
func ownAddresses() (own []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing this machine's addresses: %w", err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().Unmap())
		}
	}
	return own, nil
}
