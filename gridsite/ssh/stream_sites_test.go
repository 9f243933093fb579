//go:build sites

package ssh_test

import (
	"io"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// A stream does not occupy the place of a command, of which only a limited number run at once.
func TestStreamsAndCommands(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	for range 2 {
		startStream(t.Context(), t, conn, "exec cat")
	}
	for range 20 {
		expectOutput(t, conn, "echo ok", "ok\n")
	}
}

func TestStreamWhoseConnectionIsLost(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	s := startStream(t.Context(), t, d.open(), "exec cat")
	d.Stop()
	began := time.Now()
	_, _ = io.ReadAll(s)
	if err := s.Wait(); corral.KindOf(err) != corral.Unknown || time.Since(began) > gridsitetest.Patience {
		t.Errorf("Wait = %v after %v, want that it is unknown what became of it", err, time.Since(began))
	}
}
