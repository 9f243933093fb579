package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// badNode creates a READY site with eight nodes, one of which is avoided because attempts have failed on it.
func (f *fixture) badNode(t *testing.T, node string) {
	t.Helper()
	site := f.readySite(t)
	f.write(t, func(tx *store.Tx) error {
		_, err := tx.SetSite(site.ID, func(s *corral.Site) {
			s.Facts = &corral.SiteFacts{Queues: []corral.SiteQueue{{Name: "normal", Default: true, Nodes: 8}}}
		})
		return err
	})
	for i := range corral.AvoidAfter {
		job := f.attempt(t, f.glidein(t), fmt.Sprint("attempt-", i))
		f.write(t, func(tx *store.Tx) error {
			_, err := tx.LoseHost(job.ID, corral.LostHost{Node: node, Why: "scratch is full"})
			return err
		})
	}
}

// The avoided nodes, with the end and the reason, are part of the site until they are forgiven.
func TestForgiveNodes(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.badNode(t, "n1.hpc")
	site := must(f.Site(t.Context(), "local"))(t)
	if len(site.Avoided) != 1 {
		t.Fatalf("avoided are %+v, want one node", site.Avoided)
	}
	b := site.Avoided[0]
	if b.Node != "n1.hpc" || b.Attempts != corral.AvoidAfter || b.Why != "scratch is full" || !b.Since.Equal(b.Last) || time.Until(b.Until) > corral.AvoidFor {
		t.Errorf("avoided is %+v", b)
	}
	sites := must(f.Sites(t.Context(), api.Filter{}))(t)
	eight := 8
	set := must(f.SetSite(t.Context(), "local", api.SetSite{MaxRunning: &eight}))(t)
	for _, s := range []corral.Site{sites[0], set} {
		if !slices.Equal(s.Avoided, site.Avoided) {
			t.Errorf("avoided are %+v, want %+v", s.Avoided, site.Avoided)
		}
	}

	_, err := f.ForgiveNodes(t.Context(), "local", "n1", "n9")
	wantKind(t, "a node that is not there", err, corral.NotFound, "nodes")
	if want := `nodes: no failures are recorded for node "n9" at site local; nodes avoided there: n1.hpc`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for range 2 {
		if s := must(f.ForgiveNodes(t.Context(), "local", "n1"))(t); len(s.Avoided) > 0 {
			t.Errorf("avoided are %+v", s.Avoided)
		}
	}
	must(f.ForgiveNodes(t.Context(), "local"))(t)
	var said []string
	for _, e := range must(f.SiteHistory(t.Context(), "local"))(t) {
		if e.Event == "forgive" {
			said = append(said, e.Actor+": "+e.Reason)
		}
	}
	if want := []string{"local: node n1.hpc: scratch is full"}; !slices.Equal(said, want) {
		t.Errorf("history says %q, want %q", said, want)
	}
}

func TestForgiveNodesIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	_, err := f.ForgiveNodes(t.Context(), "nowhere")
	wantKind(t, "no such site", err, corral.NotFound, "site")
	f.badNode(t, "n1")
	_, err = f.ForgiveNodes(t.Context(), "local", strings.Split(strings.Repeat("n1 ", 1000)+"n1", " ")...)
	wantKind(t, "too many nodes", err, corral.Invalid, "nodes")
	must(f.RemoveSite(t.Context(), "local", true))(t)
	_, err = f.ForgiveNodes(t.Context(), "1")
	wantKind(t, "a site that is DELETED", err, corral.Conflict, "site")
	if s := must(f.Site(t.Context(), "1"))(t); len(s.Avoided) > 0 {
		t.Errorf("at a site that is DELETED avoided are %+v", s.Avoided)
	}
}

// For reading, a name means the site that has it, or otherwise the last one that had it; for changes, it means an
// existing site.
func TestDeletedSiteAnswersByItsName(t *testing.T) {
	t.Parallel()
	f := start(t)
	ctx := t.Context()
	for range 2 {
		must(f.CreateSite(ctx, api.NewSite{Name: "a", Contact: "local:", Batch: "fork"}, ""))(t)
		must(f.RemoveSite(ctx, "a", true))(t)
	}
	if s := must(f.Site(ctx, "a"))(t); s.ID != 2 || s.State != corral.SiteDeleted {
		t.Errorf("a is site %d, %s; want 2, DELETED", s.ID, s.State)
	}
	if h := must(f.SiteHistory(ctx, "a"))(t); h[0].Of != 2 {
		t.Errorf("history of a: %+v", h)
	}
	must(f.SiteTimeline(ctx, "a"))(t)
	must(f.SiteWaits(ctx, "a"))(t)
	_, err := f.RemoveSite(ctx, "a", false)
	wantKind(t, "removing it again", err, corral.NotFound, "site")
	_, err = f.SetSite(ctx, "a", api.SetSite{MaxRunning: new(int)})
	wantKind(t, "setting it", err, corral.NotFound, "site")
	_, err = f.Site(ctx, "b")
	wantKind(t, "a name that nobody had", err, corral.NotFound, "site")
	must(f.CreateSite(ctx, api.NewSite{Name: "a", Contact: "local:", Batch: "fork"}, ""))(t)
	if s := must(f.Site(ctx, "a"))(t); s.ID != 3 || s.State != corral.SiteNew {
		t.Errorf("a is site %d, %s; want 3, NEW", s.ID, s.State)
	}
}
