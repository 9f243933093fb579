//go:build sites

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/store"
)

// A site that cannot be used says why in a sentence, and nothing is left of the attempt.
func TestSSHSiteIsChecked(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	known := d.SSH("known_hosts")
	knownLine := d.KnownLine(t)
	base := t.TempDir()
	file := filepath.Join(base, "file")
	d.Write(t, file, "")
	good := filepath.Join(base, "it's a $ROOT", "site")
	check := func(root string, accept bool) error {
		reach := NewReach(backends(d.Home))
		defer reach.Close()
		return reach.CheckSite(t.Context(), corral.Site{Contact: d.Contact(), Batch: "fork", Root: root}, accept)
	}
	wants := func(what string, err error, kind corral.Kind, words ...string) {
		t.Helper()
		if corral.KindOf(err) != kind {
			t.Errorf("%s: %v, want an error of kind %s", what, err, kind)
		}
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", what, err, w)
			}
		}
	}
	wants("a newline", check("/tmp/a\nb", true), corral.Invalid, "control character")
	d.Write(t, known, "")
	wants("an unknown host", check(good, false), corral.Unavailable, d.Fingerprint(t), "--accept-host-key", known)
	if err := check(good, true); err != nil {
		t.Errorf("an unknown host that is accepted: %v", err)
	}
	if content, err := os.ReadFile(known); err != nil || string(content) != knownLine {
		t.Errorf("known_hosts is %q (%v), want %q", content, err, knownLine)
	}
	if err := check(good, false); err != nil {
		t.Errorf("a root that is not there yet: %v", err)
	}
	wants("no directory", check(filepath.Join(file, "site"), false), corral.Invalid, file+" is not a directory")
	wants("somebody's files", check(base, false), corral.Invalid, "it is not empty")
	wants("a place where nobody writes", check("/proc/site", false), corral.Invalid, "cannot be the root of a site")
	d.NewKey(t, "")
	wants("a key that the host does not know", check(good, false), corral.Unavailable, "does not let", "id_ed25519")
	if err := os.Remove(d.SSH("id_ed25519")); err != nil {
		t.Fatal(err)
	}
	wants("no key", check(good, false), corral.Unavailable, "no key to try")
	d.Write(t, known, strings.TrimSuffix(knownLine, "\n")[:len(knownLine)-5]+"AAAA\n")
	wants("a host key that changed", check(good, true), corral.Unavailable, d.Fingerprint(t), "somebody may be in between", "ssh-keygen -R")
	if left, err := os.ReadDir(base); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// A site that nobody is let in to waits for a person; who logs in is followed at once, and so is the connection of who
// logged in before the site was there.
func TestSSHSiteWaitsForLogin(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	d.Authorize(t, d.NewKey(t, "secret"))
	w := newWorld(t)
	w.cfg.Reach = NewReach(backends(d.Home))
	t.Cleanup(func() { w.cfg.Reach.Close() })
	clusters := NewClusters(w.lg, w.db, dispatch.Config{})
	t.Cleanup(clusters.Close)
	e := New(w.lg, w.db, clusters, w.cfg)
	stop := runEngine(t, e)
	create := func(name string) (s corral.Site) {
		w.write(func(tx *store.Tx) (err error) {
			s, err = tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: d.Contact(), Batch: "fork", Root: filepath.Join(w.dir, name)})
			return err
		})
		t.Cleanup(func() { w.remove(s.ID) })
		return s
	}
	answer := func(_ context.Context, q gridsite.Question) ([]string, error) { return []string{"secret"}, nil }

	locked := create("locked")
	w.until("the site to need a login", func() bool { return w.siteNow(locked.ID).Trouble.LoginNeeded })
	if got := w.siteNow(locked.ID); got.State != corral.SiteNew || !strings.Contains(got.Trouble.Why, "passphrase") {
		t.Errorf("the site is %s with the trouble %+v", got.State, got.Trouble)
	}
	if err := e.Login(t.Context(), locked, answer, false); err != nil {
		t.Fatal(err)
	}
	w.siteIs(locked.ID, corral.SiteReady)
	w.until("the trouble to be over after the login", func() bool { return w.siteNow(locked.ID).Trouble == corral.SiteTrouble{} })

	planned := corral.Site{Contact: d.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "planned")}
	var login *gridsite.LoginError
	if err := w.cfg.Reach.CheckSite(t.Context(), planned, false); !errors.As(err, &login) || !login.Answerable {
		t.Fatalf("CheckSite = %v, want a login that a person can help with", err)
	}
	if err := e.Login(t.Context(), corral.Site{Contact: d.Contact()}, answer, false); err != nil {
		t.Fatal(err)
	}
	if err := w.cfg.Reach.CheckSite(t.Context(), planned, false); err != nil {
		t.Fatal(err)
	}
	twoLogins := func() bool { return len(d.Logins()) == 2 } // one for each site, once who was not let in is gone
	await(t, "two logins", twoLogins)
	made := create("planned")
	w.siteIs(made.ID, corral.SiteReady)
	await(t, "two logins again", twoLogins)

	stop()
	w.cfg.Reach.Close()
	w.cfg.Reach = NewReach(backends(d.Home)) // which has no open key
	e = New(w.lg, w.db, clusters, w.cfg)
	runEngine(t, e)
	w.until("the idle site to need a login", func() bool { return w.siteNow(locked.ID).Trouble.LoginNeeded })
	for _, s := range []corral.Site{locked, made} {
		if err := e.Login(t.Context(), s, answer, false); err != nil {
			t.Error(err)
		}
	}
	w.until("the trouble to be over", func() bool { return w.siteNow(locked.ID).Trouble == (corral.SiteTrouble{}) })
}

// A connection that ends while nothing waits for the site is made again, or the site says why not; neither waits for the
// next look at an idle site.
func TestLostConnectionIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	d.Authorize(t, d.NewKey(t, ""))
	w := newWorld(t)
	w.cfg.Reach = NewReach(backends(d.Home))
	t.Cleanup(func() { w.cfg.Reach.Close() })
	clusters := NewClusters(w.lg, w.db, dispatch.Config{})
	t.Cleanup(clusters.Close)
	runEngine(t, New(w.lg, w.db, clusters, w.cfg))
	var site corral.Site
	w.write(func(tx *store.Tx) (err error) {
		site, err = tx.CreateSite(corral.Site{Name: "idle", Owner: "local", Contact: d.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "idle")})
		return err
	})
	t.Cleanup(func() { w.remove(site.ID) })
	w.siteIs(site.ID, corral.SiteReady)
	lost := time.Now()
	d.Stop()
	w.until("the trouble", func() bool { return w.siteNow(site.ID).Trouble.Why != "" })
	if took := time.Since(lost); took > pollNothing*3/4 {
		t.Errorf("noticed after %s", took)
	}
	d.Start(t)
	w.until("the end of the trouble", func() bool { return w.siteNow(site.ID).Trouble.Why == "" })
}
