//go:build sites

package siteaccess

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// An unusable site is explained in one sentence, and the check leaves nothing behind.
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
		reach := New(backends(d.Home), mine)
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
	wants("a host key that changed", check(good, true), corral.Unavailable, d.Fingerprint(t), "someone may be intercepting", "ssh-keygen -R")
	if left, err := os.ReadDir(base); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// A root may begin with a variable, expanded as in a login at the site; nothing else in it is special to a shell.
func TestRootWithAVariableOfTheSite(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t, "SetEnv SCRATCH=/big/ann RELATIVE=big/ann ALL=/")
	reach := New(backends(d.Home), mine)
	defer reach.Close()
	for _, tt := range []struct {
		root, want string
		kind       corral.Kind
	}{
		{root: "$SCRATCH/corral", want: "/big/ann/corral"},
		{root: "$SCRATCH", want: "/big/ann"},
		{root: "$SCRATCH/$HOME/`id`", want: "/big/ann/$HOME/`id`"},
		{root: "$NOT_THERE/corral", kind: corral.Invalid},
		{root: "$RELATIVE/corral", kind: corral.Invalid},
		{root: "$ALL", kind: corral.Invalid},
	} {
		got, err := reach.ExpandRoot(t.Context(), corral.Site{Contact: d.Contact(), Batch: "fork", HeadBatch: "fork", Root: tt.root}, false)
		if got != tt.want || err == nil && tt.kind != "" || err != nil && corral.KindOf(err) != tt.kind {
			t.Errorf("ExpandRoot(%s) = %q, %v, want %q and kind %q", tt.root, got, err, tt.want, tt.kind)
		}
	}
}

// A person logs in before the site exists: the connection is kept, becomes the site's, and is closed with it.
func TestLoginBeforeTheSite(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	d.Authorize(t, d.NewKey(t, "secret"))
	r := New(backends(d.Home), mine)
	defer r.Close()
	planned := corral.Site{Contact: d.Contact(), Batch: "fork", Root: filepath.Join(t.TempDir(), "planned")}
	var login *gridsite.LoginError
	if err := r.CheckSite(t.Context(), planned, false); !errors.As(err, &login) || !login.Answerable {
		t.Fatalf("CheckSite = %v, want a login that a person can help with", err)
	}
	rung := r.LoggedIn()
	ask := func(context.Context, gridsite.Question) ([]string, error) { return []string{"secret"}, nil }
	if err := r.Login(t.Context(), planned, ask, false); err != nil {
		t.Fatal(err)
	}
	<-rung
	if err := r.CheckSite(t.Context(), planned, false); err != nil {
		t.Error(err)
	}
	site := planned
	site.ID, site.State = 1, corral.SiteDeleted
	if !r.Stands(site) || r.Lost(site.ID) == nil || r.Lost(2) != nil {
		t.Error("the connection is not the site's")
	}
	if len(r.held.sites) != 1 {
		t.Errorf("%d connections, want one", len(r.held.sites))
	}
	if ip := r.LocalIP(site); !ip.IsLoopback() {
		t.Errorf("the address on the way is %s", ip)
	}
	second, err := r.Another(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	r.held.giveUp(planned, r.held.sites[keyOf(site)]) // too late: it belongs to the site
	if _, err := r.JobFile(t.Context(), site, corral.Job{Kind: corral.PilotJob, Tag: "none"}, "stdout"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if len(r.held.sites) != 0 {
		t.Error("a site that is gone keeps its connection")
	}
}
