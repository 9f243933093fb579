package siteaccess

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/local"
)

// The removal of a site deletes everything below its root, so a root must not be shared.
func TestRootIsOursAlone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "thesis.tex"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := New(backends(""), mine)
	check := func(root string) error {
		return r.CheckSite(t.Context(), corral.Site{Name: "here", Contact: "local:", Batch: "fork", Root: root}, false)
	}
	for _, root := range []string{home, "relative", "/tmp/a\nb"} {
		var e *corral.Error
		if err := check(root); !errors.As(err, &e) || e.Kind != corral.Invalid || e.Place != "root" {
			t.Errorf("root %q: %v, want Invalid at root", root, err)
		}
	}
	if err := check(home); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a root with files of others: %v", err)
	}
	if err := check(filepath.Join(home, "new", "site")); err != nil {
		t.Errorf("a root that is not there: %v", err)
	}
	if err := check(t.TempDir()); err != nil {
		t.Errorf("an empty root: %v", err)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
		t.Errorf("the check left %v (%v)", entries, err)
	}
}

// line is a transport that holds a connection, which counts itself; it is never used.
type line struct {
	local.Conn
	gridsite.Remote
	open *atomic.Int32
}

func (l line) Close() error { l.open.Add(-1); return nil }

func (line) Lost() <-chan struct{} { return nil }

// Regardless of the number of simultaneous callers and of the duration of dialling, a site has one connection; if a
// lock were held during the dial, all others would block here forever.
func TestConnectionIsOneForAll(t *testing.T) {
	t.Parallel()
	const n = 8
	var open atomic.Int32
	all := make(chan struct{})
	b := backends("")
	b.Transports["ssh"] = func(string, string) (gridsite.Conn, error) {
		if open.Add(1) == n {
			close(all)
		}
		<-all
		return &line{open: &open}, nil
	}
	r := New(b, mine)
	site := corral.Site{ID: 1, Name: "far", Contact: "ssh://far", Batch: "fork", Root: "/r"}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			access, err := r.Open(t.Context(), site)
			if err == nil {
				err = access.Head.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if open.Load() != 1 || r.Lost(1) != nil {
		t.Errorf("%d connections are open, want one", open.Load())
	}
	r.Leave(2)
	if open.Load() != 1 {
		t.Error("another site's connection was closed")
	}
	r.Leave(1)
	if open.Load() != 0 {
		t.Errorf("%d connections are open, want none", open.Load())
	}
}

// This machine needs no login and has no connection that could be lost.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.site("here")
	if err := w.reach.Login(t.Context(), s, nil, false); corral.KindOf(err) != corral.Invalid {
		t.Errorf("Login = %v, want Invalid", err)
	}
	if ip := w.reach.LocalIP(s); ip != netip.AddrFrom4([4]byte{127, 0, 0, 1}) || !w.reach.Stands(s) {
		t.Errorf("its address is %s", ip)
	}
	if _, err := w.reach.JobFile(t.Context(), s, corral.Job{Kind: corral.PilotJob, Tag: "none"}, "stdout"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	bad := s
	bad.Contact = "carrier-pigeon://here"
	for what, err := range map[string]error{
		"Open":       second(w.reach.Open(t.Context(), bad)),
		"Facts":      second(w.reach.Facts(t.Context(), bad)),
		"Another":    second(w.reach.Another(bad)),
		"CheckSite":  w.reach.CheckSite(t.Context(), bad, false),
		"ExpandRoot": second(w.reach.ExpandRoot(t.Context(), bad, false)),
		"Login":      w.reach.Login(t.Context(), bad, nil, false),
		"JobFile":    second(w.reach.JobFile(t.Context(), bad, corral.Job{}, "stdout")),
	} {
		if corral.KindOf(err) != corral.Invalid {
			t.Errorf("%s of a site with a bad contact: %v, want Invalid", what, err)
		}
	}
	w.reach.Close()
}

func second[T any](_ T, err error) error { return err }

// A probe that a request attends is left alone unless its site is being left.
func TestProbesThatAreLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.site("here")
	access, err := w.reach.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	left := func(s corral.Site) []string {
		t.Helper()
		tags, err := w.prober.Left(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return tags
	}
	err = w.prober.probe(t.Context(), s, map[string]string{}, func(probeReader) error {
		if tags := left(s); len(tags) > 0 {
			t.Errorf("to be ended while it is attended: %q", tags)
		}
		gone := s
		gone.State = corral.SiteRemoving
		tags := left(gone)
		if len(tags) != 1 {
			t.Errorf("to be ended with its site: %q, want one", tags)
		}
		return w.prober.End(context.WithoutCancel(t.Context()), s, access.Pilots, tags[0])
	})
	if err != nil || len(left(s)) > 0 || !slices.Equal(w.probesLeft(s), nil) {
		t.Errorf("%v; left are %q", err, w.probesLeft(s))
	}
}
