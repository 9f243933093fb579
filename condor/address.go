package condor

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddress returns the listening address of a daemon. In an ad it has the form <IP:PORT?more>, where more describes
// alternative routes to the daemon.
func ParseAddress(text string) (netip.AddrPort, error) {
	inside, opened := strings.CutPrefix(text, "<")
	inside, closed := strings.CutSuffix(inside, ">")
	where, _, _ := strings.Cut(inside, "?")
	at, err := netip.ParseAddrPort(where)
	if !opened || !closed || err != nil {
		return netip.AddrPort{}, fmt.Errorf("no address <IP:PORT> of a daemon in %.100q", text)
	}
	return at, nil
}
