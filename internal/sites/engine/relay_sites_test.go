//go:build sites

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// through returns a READY site behind an sshd with additional configuration lines, and the folder of its package.
func (w *world) through(lines ...string) (s corral.Site, dir string) {
	w.t.Helper()
	sshd := gridsitetest.StartSSHD(w.t, lines...)
	w.reaches(backends(sshd.Home))
	w.t.Cleanup(w.cfg.Reach.Close)
	w.start()
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: "far", Owner: "local", Contact: sshd.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "far")})
		return err
	})
	w.t.Cleanup(func() {
		own := siteaccess.New(backends(sshd.Home), w.cfg.Key.Owner()) // the engine closes its connection when the site is gone
		defer own.Close()
		w.removeOver(own, s.ID)
	})
	w.siteIs(s.ID, corral.SiteReady)
	s = w.siteNow(s.ID)
	dir, err := staging.Dir(s.Root, packages.Package{Name: s.Package, Digest: s.PackageDigest})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, dir
}

// relayedGlidein requests one worker that uses the relay.
func (w *world) relayedGlidein(site corral.SiteID) (g corral.Glidein) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: site, Cluster: 1,
			Shape:  corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 64, Walltime: corral.Seconds(5 * time.Minute)},
			Broker: corral.BrokerRelay})
		return err
	})
	return g
}

// A relay that cannot start reports that at the site and to the glidein that waits for it; it is removed with its
// site.
func TestRelayThatDoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, dir := w.through()
	pilot := filepath.Join(dir, delivery.PilotInPackage)
	if err := os.Chmod(pilot, 0o644); err != nil {
		t.Fatal(err)
	}
	g := w.relayedGlidein(s.ID)
	const want = "Permission denied"
	w.until("the site says why", func() bool { return strings.Contains(w.siteNow(s.ID).RelayTrouble, want) })
	w.until("the glidein says why", func() bool {
		g := w.glideinNow(g.ID)
		return g.State == corral.GlideinWaiting && strings.HasPrefix(g.Reason, "the site's relay is not running: ") && strings.Contains(g.Reason, want)
	})
	if err := os.Chmod(pilot, 0o755); err != nil {
		t.Fatal(err)
	}
	w.attemptIs(g.ID, corral.JobRunning)
	if got := w.siteNow(s.ID).RelayTrouble; got != "" {
		t.Errorf("the site still says %q", got)
	}
	var p struct{ PID int }
	b, err := os.ReadFile(filepath.Join(s.Root, "relay.json"))
	if err := errors.Join(err, json.Unmarshal(b, &p)); err != nil {
		t.Fatal(err)
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.MoveSite(s.ID, corral.SiteForget, "forced")
		return err
	})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	runs := func() bool { // or it is a zombie
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	for deadline := time.Now().Add(patience); runs(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the relay of a site that is gone still runs")
		}
	}
}

// If the sshd allows one session for each connection, the relay gets its own connection.
func TestRelayBesideOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.through("MaxSessions 1")
	g := w.relayedGlidein(s.ID)
	w.attemptIs(g.ID, corral.JobRunning)
	if got := w.siteNow(s.ID); got.RelayTrouble != "" {
		t.Errorf("the relay says %q", got.RelayTrouble)
	}
	w.write(func(tx *store.Tx) error { // the site handles this although a relay runs
		_, err := tx.AskGlidein(g.ID, corral.AskCancel, "asked to")
		return err
	})
	w.until("the end of the glidein", func() bool { return w.glideinNow(g.ID).State.Terminal() })
}
