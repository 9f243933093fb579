package broker

import (
	"context"
	"crypto/subtle"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
)

// The limits keep a pilot from using corrald as a port scanner or a flood.
const (
	lowestPort = 1024                   // no listener of a pilot has a lower one
	minNonce   = 16                     // bytes
	maxNonce   = 128                    // bytes
	headStart  = 200 * time.Millisecond // of addresses that come first in the list over those that follow
)

// Reach is the pool's side of a CallBack: it dials addresses at the same time, sends nothing, and
// returns the first of the list that sends nonce. Else the error, of kind Failed, says what became of
// each. Addresses are numbers, of ports that any process may have; what somebody else's listener says is
// not passed on.
func Reach(ctx context.Context, addresses []string, nonce string) (string, error) {
	if err := checkReach(addresses, nonce); err != nil {
		return "", err
	}
	troubles := make([]string, len(addresses))
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	ends := make([]chan string, len(addresses)) // of trouble; empty: reached
	var dials sync.WaitGroup
	defer dials.Wait()
	defer cancel()
	for i, address := range addresses {
		ends[i] = make(chan string, 1)
		dials.Go(func() {
			trouble := hear(ctx, address, nonce)
			ends[i] <- trouble
			if trouble == "" { // others have so long to be the one that comes first
				time.AfterFunc(headStart, cancel)
			}
		})
	}
	// Taken in the order of the list, which is the node's preference: an address that answers a little later than
	// another one, but comes first, is the one that workers shall use.
	for i, address := range addresses {
		trouble := <-ends[i]
		if trouble == "" {
			return address, nil
		}
		troubles[i] = address + ": " + trouble
	}
	return "", corral.Errorf(corral.Failed, "%s", strings.Join(troubles, "; "))
}

// checkReach refuses what a pilot, which anybody may be at a site, could abuse to have corrald dial: names, broadcast
// addresses, ports of services, and too many of them.
func checkReach(addresses []string, nonce string) error {
	switch {
	case len(addresses) == 0 || len(addresses) > maxAddresses:
		return corral.Errorf(corral.Invalid, "%d addresses to dial, where 1 to %d are allowed",
			len(addresses), maxAddresses)
	case len(nonce) < minNonce || len(nonce) > maxNonce:
		return corral.Errorf(corral.Invalid, "a nonce of %d bytes, where %d to %d are allowed",
			len(nonce), minNonce, maxNonce)
	}
	for _, address := range addresses {
		ap, err := netip.ParseAddrPort(address)
		if a := ap.Addr().Unmap(); err != nil || ap.Port() < lowestPort || !a.IsGlobalUnicast() && !a.IsLoopback() {
			return corral.Errorf(corral.Invalid,
				"%.60q is not to be dialled: want the number of one machine and a port from %d on", address, lowestPort)
		}
	}
	return nil
}

// hear connects to address and waits for nonce. It returns "" if the nonce came, and otherwise why it did not.
func hear(ctx context.Context, address, nonce string) string {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return trouble(err)
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	heard := make([]byte, len(nonce))
	if _, err := io.ReadFull(nc, heard); err != nil || subtle.ConstantTimeCompare(heard, []byte(nonce)) != 1 {
		return "somebody else answers there"
	}
	return ""
}
