//go:build sites

package engine

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/internal/store"
)

// A site that refuses all logins waits for a person. A login is noticed at once, and so is the connection of a person
// who logged in before the site existed.
func TestSSHSiteWaitsForLogin(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	d.Authorize(t, d.NewKey(t, "secret"))
	w := newWorld(t)
	w.reaches(backends(d.Home))
	t.Cleanup(func() { w.cfg.Reach.Close() })
	stop := w.runEngine()
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
	if err := w.cfg.Reach.Login(t.Context(), locked, answer, false); err != nil {
		t.Fatal(err)
	}
	w.siteIs(locked.ID, corral.SiteReady)
	w.until("the trouble to be over after the login", func() bool { return w.siteNow(locked.ID).Trouble == corral.SiteTrouble{} })

	planned := corral.Site{Owner: "local", Contact: d.Contact(), Batch: "fork", Root: filepath.Join(w.dir, "planned")}
	var login *gridsite.LoginError
	if err := w.cfg.Reach.CheckSite(t.Context(), planned, false); !errors.As(err, &login) || !login.Answerable {
		t.Fatalf("CheckSite = %v, want a login that a person can help with", err)
	}
	if err := w.cfg.Reach.Login(t.Context(), corral.Site{Owner: "local", Contact: d.Contact()}, answer, false); err != nil {
		t.Fatal(err)
	}
	if err := w.cfg.Reach.CheckSite(t.Context(), planned, false); err != nil {
		t.Fatal(err)
	}
	twoLogins := func() bool { return len(d.Logins()) == 2 } // one for each site, after the refused ones have ended
	await(t, "two logins", twoLogins)
	made := create("planned")
	w.siteIs(made.ID, corral.SiteReady)
	await(t, "two logins again", twoLogins)

	stop()
	w.cfg.Reach.Close()
	w.reaches(backends(d.Home)) // without an accepted key
	w.runEngine()
	w.until("the idle site to need a login", func() bool { return w.siteNow(locked.ID).Trouble.LoginNeeded })
	for _, s := range []corral.Site{locked, made} {
		if err := w.cfg.Reach.Login(t.Context(), s, answer, false); err != nil {
			t.Error(err)
		}
	}
	w.until("the trouble to be over", func() bool { return w.siteNow(locked.ID).Trouble == (corral.SiteTrouble{}) })
}

// A connection that ends while no work waits for the site is reopened, or the site shows why not; neither waits for
// the next poll of an idle site.
func TestLostConnectionIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	d.Authorize(t, d.NewKey(t, ""))
	w := newWorld(t)
	w.reaches(backends(d.Home))
	t.Cleanup(func() { w.cfg.Reach.Close() })
	w.runEngine()
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
