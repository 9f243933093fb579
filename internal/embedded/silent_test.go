package embedded_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// TestSilentPeerIsDisconnected: a peer that connects and then stalls is disconnected, before the TLS handshake, during it,
// and before the hello.
func TestSilentPeerIsDisconnected(t *testing.T) {
	t.Parallel()
	cert, err := wire.LoadOrCreateCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secure := func(nc net.Conn) net.Conn {
		return tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	}
	plain := func(nc net.Conn) net.Conn { return nc }
	for name, tt := range map[string]struct {
		listen func(net.Conn) net.Conn
		say    string
	}{
		"nothing":             {plain, ""},
		"half a hello":        {plain, "\x00\x00\x01\x00{"},
		"no handshake":        {secure, ""},
		"half of a handshake": {secure, "\x16\x03\x01\x02\x00\x01"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer theirs.Close()
				began := time.Now()
				go theirs.Write([]byte(tt.say))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				open(ctx, port.New(slog.New(slog.DiscardHandler), nil, nil)).conns <- tt.listen(ours)
				_, _ = io.Copy(io.Discard, theirs)
				if took := time.Since(began); took < wire.AdmitTimeout || took > 2*wire.AdmitTimeout {
					t.Errorf("it was let go after %s, want %s and what it takes to say so", took, wire.AdmitTimeout)
				}
			})
		})
	}
}
