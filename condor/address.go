package condor

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseAddress returns where a daemon listens. In an ad that is written <IP:PORT?more>, where more describes other ways
// to the daemon.
func ParseAddress(text string) (netip.AddrPort, error) {
	inside, opened := strings.CutPrefix(text, "<")
	inside, closed := strings.CutSuffix(inside, ">")
	where, _, _ := strings.Cut(inside, "?")
	at, err := netip.ParseAddrPort(where)
	if !opened || !closed || err != nil {
		return netip.AddrPort{}, fmt.Errorf("there is no address <IP:PORT> of a daemon in %.100q", text)
	}
	return at, nil
}
