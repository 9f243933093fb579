package engine

import (
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// probesLeft returns what is left of probes: rows in the store and directories at the site.
func (w *world) probesLeft(s corral.Site) (left []string) {
	w.t.Helper()
	err := storetest.All(w.db).View(w.t.Context(), func(tx *store.Tx) (err error) {
		left, err = tx.Probes(s.ID)
		return err
	})
	dirs, globErr := filepath.Glob(filepath.Join(s.Root, "jobs", "corral-probe-*"))
	if err != nil || globErr != nil {
		w.t.Fatal(err, globErr)
	}
	return append(left, dirs...)
}

// vacant returns an address that refuses connections for the duration of the test, because it is reserved.
func vacant(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
}

// Probes that a dead corrald left are ended by the next one, and no site is left with one.
func TestProbesOfTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.start()
	id := w.site("here").ID
	w.siteIs(id, corral.SiteReady)
	s := w.siteNow(id)
	access, err := w.cfg.Reach.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	batch := access.Pilots
	probe := func(tag string) {
		w.write(func(tx *store.Tx) error { return tx.AddProbe(id, tag) })
		if _, err := batch.Submit(t.Context(), gridsite.JobSpec{Tag: tag, Argv: []string{"/bin/sleep", "300"}, Hosts: 1, CPUs: 1}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(tag string) func() bool {
		return func() bool {
			known, err := batch.Poll(t.Context(), []string{tag})
			return err == nil && len(known) == 0 && len(w.probesLeft(s)) == 0
		}
	}
	stop()
	probe("corral-probe-dead")
	w.start()
	w.until("the dead corrald's probe is gone", gone("corral-probe-dead"))
	probe("corral-probe-other")
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(id, corral.SiteRemove, ""); return err })
	w.siteIs(id, corral.SiteDeleted)
	w.until("the probe is gone with its site", gone("corral-probe-other"))
}
