package pool

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"github.com/corral-pilot/corral"
)

// Reach connects to the worker port at unix:PATH or tls:HOST:PORT, makes sure that it is the one with the certificate's
// digest, and hangs up. It needs no token.
func Reach(ctx context.Context, address, certDigest string) error {
	ctx, cancel := context.WithTimeout(ctx, admitTimeout)
	defer cancel()
	network, where, _ := strings.Cut(address, ":")
	var nc net.Conn
	var err error
	switch network {
	case "unix":
		nc, err = new(net.Dialer).DialContext(ctx, "unix", where)
	case "tls":
		nc, err = (&tls.Dialer{Config: pinned(certDigest)}).DialContext(ctx, "tcp", where)
	default:
		return corral.Errorf(corral.Invalid, "%q is not unix:PATH or tls:HOST:PORT", address)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nc.Close()
}
