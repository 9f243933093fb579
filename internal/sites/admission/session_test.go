package admission_test

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/node/pilot"
)

// The token in an order admits one pilot, once: after that its secret is required, and no restart of corrald changes
// this.
func TestTokenAdmitsOnePilot(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	dial := func(holder, secret string) error {
		l, err := pilot.Dial(s.Context(), slog.New(slog.DiscardHandler), pilot.LinkConfig{
			Tag: s.stolen.Tag, Token: s.token, Holder: holder, Secret: secret, Addresses: []string{"unix:" + s.socket},
		})
		if err == nil {
			l.Close()
		}
		return err
	}
	work := func(secret string) error {
		nc, err := net.Dial("unix", s.socket)
		if err != nil {
			return err
		}
		g, err := wire.Greet(s.Context(), nc, &wire.Hello{Version: wire.Version, Role: wire.RoleWorker, Tag: s.stolen.Tag,
			Token: s.token, Secret: secret, Holder: "pilot", ID: s.stolen.Tag + "/0", Instance: "i", CPUs: 1, LeftMS: 1000})
		if err == nil {
			g.Close()
		}
		return err
	}
	if err := dial("pilot", ""); corral.KindOf(err) != corral.Invalid {
		t.Errorf("a pilot without a secret: %v, want it refused as invalid", err)
	}
	for range 2 {
		for _, tt := range []struct {
			name, holder, secret string
			duplicate            bool
		}{
			{"the first pilot", "pilot", "one", false},
			{"the same one, whose answer was lost", "pilot", "one", false},
			{"one of its name", "pilot", "another", true},
			{"one that knows its secret and not its name", "thief", "one", true},
			{"another", "thief", "another", true},
		} {
			if err := dial(tt.holder, tt.secret); errors.Is(err, wire.ErrDuplicate) != tt.duplicate || !tt.duplicate && err != nil {
				t.Errorf("%s: %v, want a duplicate %v", tt.name, err, tt.duplicate)
			}
		}
		if err := work("one"); err != nil {
			t.Errorf("its worker: %v", err)
		}
		if err := work("another"); corral.KindOf(err) != corral.Unauthenticated || !errors.Is(err, wire.ErrRefused) {
			t.Errorf("a worker in the place of its worker: %v, want it refused", err)
		}
		s.stop()
		s.open()
	}
}
