package embedded_test

import (
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

func TestReach(t *testing.T) {
	t.Parallel()
	cert, err := wire.LoadOrCreateCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ln, digest, err := port.New(slog.New(slog.DiscardHandler), nil, nil).ListenTLS("127.0.0.1:0", cert)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, nc) // the handshake
			nc.Close()
		}
	}()
	for _, tt := range []struct {
		name, address, digest, want string
	}{
		{"open", "tls:" + ln.Addr().String(), digest, ""},
		{"somebody else's", "tls:" + ln.Addr().String(), "sha256:00", "certificate"},
		{"nobody's", "tls:" + vacant(t), digest, "refused"},
		{"no socket", "unix:" + filepath.Join(t.TempDir(), "s"), "", "no such file"},
		{"no way that is direct", "relay:h:1", digest, "want unix:PATH"},
	} {
		err := wire.Reach(t.Context(), tt.address, tt.digest)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := wire.Reach(t.Context(), "h:1", ""); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Reach(h:1) = %v, want it refused", err)
	}
}
