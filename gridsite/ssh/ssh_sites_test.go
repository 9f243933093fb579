//go:build sites

package ssh_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
)

// Batch fork through a real sshd, with one connection for all tests.
func TestSSHForkConformance(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture { return gridsitetest.OpenFork(t, conn) })
}

// A command does not wait forever for an occupied session, regardless of the number of other waiting commands.
func TestSSHSessionTaken(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t, "MaxSessions 1").open()
	conn.SetSessionPatience(200 * time.Millisecond)
	startStream(t.Context(), t, conn, "exec cat")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
			if corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), "MaxSessions") {
				t.Errorf("Run = %v, want that the server admits no more sessions", err)
			}
		})
	}
	all.Wait()
}

// If sshd admits fewer sessions than there are commands, the commands wait for one another.
func TestSSHSessionsLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"MaxSessions 10", "MaxSessions 2", "MaxSessions 1"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			d := startSSHD(t, limit)
			conn := d.open()
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() { expectOutput(t, conn, "echo ok", "ok\n") })
			}
			all.Wait()
			if n := len(d.Logins()); n != 1 {
				t.Errorf("%d connections, want one", n)
			}
		})
	}
}

func TestSSHForkOutage(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	f := gridsitetest.OpenFork(t, d.open())
	f.Conn = local.Conn{}
	gridsitetest.TestOutage(t, f, d.outage())
}

func (d *sshd) outage() gridsitetest.Outage {
	return gridsitetest.Outage{Stop: func(testing.TB) { d.Stop() }, Start: func(testing.TB) { d.Start(d.t) }}
}
