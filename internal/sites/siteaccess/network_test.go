package siteaccess

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
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

func TestNetworkIsProbed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, e := w.site("here"), w.prober
	collector, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mine := corral.Cluster{Name: "mine", Kind: corral.Condor, Collector: collector.Addr().String()}
	began := time.Now()
	p, err := e.ProbeNetwork(t.Context(), s, mine)
	t.Logf("%v: %s; measured: %s", time.Since(began), p, strings.Join(p.Measured, "; "))
	if err != nil || p.Site != "here" || p.Cluster != "mine" || p.Broker != corral.BrokerNone || len(p.Measured) != 2 {
		t.Errorf("ProbeNetwork() = %+v, %v; want none on one machine", p, err)
	}
	theirs := mine
	theirs.Attached = true
	if p, err := e.ProbeNetwork(t.Context(), s, theirs); err != nil || p.Broker != corral.BrokerCCB || !strings.Contains(p.Reason, "elsewhere than corrald") {
		t.Errorf("of an attached pool: %+v, %v; want ccb", p, err)
	}
	collector.Close()
	mine.Collector = vacant(t)
	if p, err := e.ProbeNetwork(t.Context(), s, mine); err != nil || p.Broker != "" || !strings.Contains(p.Reason, "the pool is down") || len(p.Measured) == 0 {
		t.Errorf("with the pool down: %+v, %v; want no way", p, err)
	}
	if err := os.RemoveAll(filepath.Join(s.Root, "packages")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ProbeNetwork(t.Context(), s, mine); corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), "pilot") {
		t.Errorf("without a pilot at the site: %v, want a Failed error with the site's words", err)
	}
	if left := w.probesLeft(s); len(left) > 0 {
		t.Errorf("left of the probes: %q", left)
	}
}
