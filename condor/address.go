package condor

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddress returns where a daemon listens, from how it writes that in its ad: <IP:PORT?more>, of which more says
// what else there is about the way to it.
func ParseAddress(text string) (netip.AddrPort, error) {
	inside, opened := strings.CutPrefix(text, "<")
	inside, closed := strings.CutSuffix(inside, ">")
	where, _, _ := strings.Cut(inside, "?")
	at, err := netip.ParseAddrPort(where)
	if !opened || !closed || err != nil {
		return netip.AddrPort{}, fmt.Errorf("%.100q is no address of a daemon, which is <IP:PORT>", text)
	}
	return at, nil
}
