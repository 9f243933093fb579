package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

func TestSiteBehindSSH(t *testing.T) {
	t.Parallel()
	f := start(t)
	got := must(f.CreateSite(t.Context(), api.NewSite{Name: "hpc", Contact: "ssh://ann@login.example:2222", Batch: "fork", MaxQueued: 3, MaxRunning: 8}, ""))(t)
	want := corral.Site{ID: 1, Name: "hpc", Owner: "local", Contact: "ssh://ann@login.example:2222", Batch: "fork", HeadBatch: "fork",
		Root: "/home/ann/.corral-hpc", State: corral.SiteNew, Limits: corral.SiteLimits{MaxQueued: 3, MaxRunning: 8},
		CreatedAt: got.CreatedAt, UpdatedAt: got.CreatedAt}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("site (-want +got):\n%s", diff)
	}
	if len(f.checked) != 1 || f.checked[0].Root != want.Root {
		t.Errorf("checked %+v, want the root as it is at the site", f.checked)
	}
}

// If a site does not admit corrald, the problem's place names the field that helps.
func TestSiteThatRefusesLogins(t *testing.T) {
	t.Parallel()
	f := start(t)
	in := api.NewSite{Name: "hpc", Contact: "ssh://hpc", Batch: "fork"}
	f.stranger = &gridsite.HostKeyError{Problem: gridsite.HostKeyUnknown, Address: "hpc:22", Type: "ssh-ed25519",
		Fingerprint: "SHA256:x", Files: []string{"/home/ann/.ssh/known_hosts"}}
	_, err := f.CreateSite(t.Context(), in, "")
	wantKind(t, "unknown host key", err, corral.Forbidden, "accept_host_key")
	in.AcceptHostKey = true
	must(f.CreateSite(t.Context(), in, ""))(t)
	in.Name, in.Root = "other", "/srv/other"
	for _, tt := range []struct {
		says  error
		place string
	}{
		{&gridsite.HostKeyError{Problem: gridsite.HostKeyChanged, Address: "hpc:22", Files: []string{"/home/ann/.ssh/known_hosts"}}, "contact"},
		{&gridsite.LoginError{User: "ann", Address: "hpc:22", Err: errors.New("no"), Answerable: true}, "login"},
		{&gridsite.LoginError{User: "ann", Address: "hpc:22", Err: errors.New("no")}, "contact"},
	} {
		f.shut = fmt.Errorf("reaching hpc: %w", tt.says)
		_, err := f.CreateSite(t.Context(), in, "")
		wantKind(t, tt.place, err, corral.Forbidden, tt.place)
		if !strings.Contains(err.Error(), tt.says.Error()) {
			t.Errorf("%q lacks %q", err, tt.says)
		}
	}
}

// A site that does not answer must not make clients repeat the request at once, as they do after 503.
func TestSiteThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.shut = errors.New("reaching ssh://hpc: connection refused")
	status, p, _ := f.send(t, "POST", "/v1/sites", `{"name": "hpc", "contact": "ssh://hpc", "batch": "fork"}`)
	if status != 502 || p.Kind != corral.Unavailable || p.Place != "contact" {
		t.Errorf("%d %+v, want 502, unavailable at contact", status, p)
	}
}

// Conflicts with the store are reported before the site is contacted, because a person may have to type a code for
// that.
func TestTakenSiteIsNotAsked(t *testing.T) {
	t.Parallel()
	f := start(t)
	hpc := api.NewSite{Name: "hpc", Contact: "ssh://hpc", Batch: "fork", Root: "/srv/hpc"}
	must(f.CreateSite(t.Context(), hpc, ""))(t)
	asked := len(f.checked)
	_, err := f.CreateSite(t.Context(), hpc, "")
	wantKind(t, "a name again", err, corral.Conflict, "name")
	hpc.Name, hpc.Root = "other", "/srv/hpc/other"
	_, err = f.CreateSite(t.Context(), hpc, "")
	wantKind(t, "a root in another", err, corral.Conflict, "root")
	if len(f.checked) != asked {
		t.Error("the site was asked all the same")
	}
	hpc.Root = "$HOME/.corral-hpc"
	must(f.CreateSite(t.Context(), hpc, ""))(t)
	hpc.Name = "third"
	_, err = f.CreateSite(t.Context(), hpc, "")
	wantKind(t, "a root that is another's once its variable is known", err, corral.Conflict, "root")
}

func TestBadRoots(t *testing.T) {
	t.Parallel()
	f := start(t)
	for name, root := range map[string]string{
		"newline": "/srv/a\nb", "control character": "/srv/\x01", "NUL": "/srv/\x00", "not UTF-8": "/srv/\xff", "relative": "srv", "all": "/", "all, in the end": "/srv/..",
		"long": strings.Repeat("/0123456789", 100), "long name": "/srv/" + strings.Repeat("x", 256),
		"variable on this machine": "$HOME/x",
	} {
		_, err := f.CreateSite(t.Context(), api.NewSite{Name: "x", Contact: "local:", Batch: "fork", Root: root}, "")
		wantKind(t, name, err, corral.Invalid, "root")
	}
	_, err := f.CreateSite(t.Context(), api.NewSite{Name: "x", Contact: "ssh://hpc", Batch: "fork", Root: "$HOME/" + strings.Repeat("x", 250) + "/x/../" + strings.Repeat("y/", 383)}, "")
	wantKind(t, "long once its variable is known", err, corral.Invalid, "root")
	if sites := must(f.Sites(t.Context(), api.Filter{All: true}))(t); len(sites) > 0 || len(f.checked) > 0 {
		t.Errorf("sites %+v; asked about %+v", sites, f.checked)
	}
}

func TestSiteIsSet(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	three, none, long := 3, 0, "long"
	got := must(f.SetSite(t.Context(), "local", api.SetSite{MaxQueued: &three}))(t)
	if got.Limits != (corral.SiteLimits{MaxQueued: 3}) || got.State != corral.SiteReady {
		t.Errorf("site %+v, want 3 attempts queued at most", got)
	}
	got = must(f.SetSite(t.Context(), "local", api.SetSite{MaxQueued: &none, MaxRunning: &three}))(t)
	if got.Limits != (corral.SiteLimits{MaxRunning: 3}) {
		t.Errorf("limits %+v, want 3 running at most", got.Limits)
	}
	entries := must(f.SiteHistory(t.Context(), "local"))(t)
	if last := entries[len(entries)-1]; last.Event != "set" || last.Reason != "max_queued 0, max_running 3" || last.Actor != "local" {
		t.Errorf("history ends with %+v", last)
	}
	f.createSlurm(t)
	for _, tt := range []struct {
		in   api.SetSite
		says string
	}{
		{api.SetSite{Queue: ptr("long"), SiteOptions: &[]string{"--exclusive", "--mail-type END"}}, `queue "long", site_options ["--exclusive" "--mail-type END"]`},
		{api.SetSite{Queue: ptr(""), SiteOptions: &[]string{}}, `queue "", site_options []`},
	} {
		must(f.SetSite(t.Context(), "hpc", tt.in))(t)
		entries := must(f.SiteHistory(t.Context(), "hpc"))(t)
		if last := entries[len(entries)-1]; last.Reason != tt.says {
			t.Errorf("the history says %s, want %s", last.Reason, tt.says)
		}
	}
	checks := len(f.checked)
	for _, tt := range []struct {
		name  string
		in    api.SetSite
		kind  corral.Kind
		place string
	}{
		{"nothing", api.SetSite{}, corral.Invalid, "body"},
		{"below nothing", api.SetSite{MaxQueued: ptr(-1)}, corral.Invalid, "max_queued"},
		{"a queue of fork", api.SetSite{Queue: &long}, corral.Unsatisfiable, "queue"},
		{"lines of fork", api.SetSite{SiteOptions: &[]string{"-x"}}, corral.Unsatisfiable, "site_options"},
		{"control character", api.SetSite{Account: ptr("a\nb")}, corral.Invalid, "account"},
		{"empty line", api.SetSite{SiteOptions: &[]string{" "}}, corral.Invalid, "site_options"},
	} {
		_, err := f.SetSite(t.Context(), "local", tt.in)
		wantKind(t, tt.name, err, tt.kind, tt.place)
	}
	if len(f.checked) != checks {
		t.Error("the site was asked about options that did not change")
	}
}

// Options are checked together. If two changes are made at once, the one that was checked without the other is
// refused.
func TestOptionsThatChangeTogetherAreAskedAboutTogether(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.createSlurm(t)
	meanwhile := func() {
		f.meanwhile = nil
		f.write(t, func(tx *store.Tx) error {
			_, err := tx.SetSite(1, func(s *corral.Site) { s.Account = "phys" })
			return err
		})
	}
	f.meanwhile = meanwhile
	site := must(f.SetSite(t.Context(), "hpc", api.SetSite{Queue: ptr("long")}))(t)
	if site.Queue != "long" || site.Account != "phys" {
		t.Errorf("queue %q, account %q; want both changes", site.Queue, site.Account)
	}
	if last := f.checked[len(f.checked)-1]; last.Queue != "long" || last.Account != "phys" {
		t.Errorf("last asked about %+v; want both options", last.BatchOptions)
	}
	f.meanwhile = meanwhile
	if site = must(f.SetSite(t.Context(), "hpc", api.SetSite{MaxQueued: ptr(7)}))(t); site.Limits.MaxQueued != 7 {
		t.Errorf("limits %+v, want 7 queued", site.Limits)
	}
}

func TestDeletedSiteIsNotSet(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.createSlurm(t)
	must(f.RemoveSite(t.Context(), "hpc", true))(t)
	_, err := f.SetSite(t.Context(), "1", api.SetSite{MaxQueued: ptr(7)})
	wantKind(t, "a deleted site", err, corral.Conflict, "site")
}

func (f *fixture) createSlurm(t *testing.T) {
	t.Helper()
	must(f.CreateSite(t.Context(), api.NewSite{Name: "hpc", Contact: "ssh://hpc", Batch: "slurm"}, ""))(t)
}

func ptr[T any](v T) *T { return &v }
