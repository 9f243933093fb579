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

// The limits prevent a pilot from using corrald as a port scanner or for a flood.
const (
	lowestPort = 1024                   // below all listeners of pilots
	minNonce   = 16                     // bytes
	maxNonce   = 128                    // bytes
	headStart  = 200 * time.Millisecond // of earlier addresses in the list over later ones
)

// Reach is the pool's side of a CallBack: it dials the addresses concurrently, sends nothing, and returns the first one
// in the list that sends nonce. Otherwise the error, of kind Failed, has the result of each. Addresses are numeric,
// with unprivileged ports; the output of other listeners is not passed on.
func Reach(ctx context.Context, addresses []string, nonce string) (string, error) {
	if err := checkReach(addresses, nonce); err != nil {
		return "", err
	}
	troubles := make([]string, len(addresses))
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	ends := make([]chan string, len(addresses)) // of troubles; empty: reached
	var dials sync.WaitGroup
	defer dials.Wait()
	defer cancel()
	for i, address := range addresses {
		ends[i] = make(chan string, 1)
		dials.Go(func() {
			trouble := hear(ctx, address, nonce)
			ends[i] <- trouble
			if trouble == "" { // earlier addresses may still answer within this time
				time.AfterFunc(headStart, cancel)
			}
		})
	}
	// Read in the order of the list, which is the node's preference: workers should use an earlier address even if it
	// answers slightly later than another one.
	for i, address := range addresses {
		trouble := <-ends[i]
		if trouble == "" {
			return address, nil
		}
		troubles[i] = address + ": " + trouble
	}
	return "", corral.Errorf(corral.Failed, "%s", strings.Join(troubles, "; "))
}

// checkReach rejects requests by which a pilot, which any process at a site may impersonate, could misuse corrald:
// names, broadcast addresses, ports of services, and too many addresses.
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
				"%.60q must not be dialled: want the IP address of one machine and a port from %d on", address, lowestPort)
		}
	}
	return nil
}

// hear connects to address and waits for nonce. It returns "" if the nonce arrived, and otherwise the reason.
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
		return "another program answers there"
	}
	return ""
}
