package store_test

import (
	"slices"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/google/go-cmp/cmp"
)

func TestSiteKeepsAllFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newSite("ranger")
	s.Platform = corral.Platform{OS: "linux", Arch: "x86_64", Libc: "glibc2.36"}
	s.Package, s.PackageDigest = "embedded-1.0", "sha256:00"
	w.write(func(tx *store.Tx) (err error) { s, err = tx.CreateSite(s); return err })
	if s.ID == 0 || s.State != corral.SiteNew || s.CreatedAt.IsZero() {
		t.Errorf("created %+v", s)
	}
	w.view(func(tx *store.Tx) error {
		byID, err := tx.Site(s.ID)
		if diff := cmp.Diff(s, byID); diff != "" || err != nil {
			t.Errorf("Site: %v %s", err, diff)
		}
		byName, err := tx.SiteNamed("ranger")
		if diff := cmp.Diff(s, byName); diff != "" || err != nil {
			t.Errorf("SiteNamed: %v %s", err, diff)
		}
		return nil
	})
}

func TestSiteNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.Site(99); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.SiteNamed("nowhere"); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.MoveSite(99, corral.SiteRemove, ""); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.SetSite(99, func(*corral.Site) {}); return err })
}

func TestSiteNameIsFreeOnceDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	again := func(tx *store.Tx) error { _, err := tx.CreateSite(newSite("local")); return err }
	w.refused(corral.Conflict, again)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(w.site.ID, corral.SiteForget, "gone"); return err })
	w.refused(corral.NotFound, func(tx *store.Tx) error { _, err := tx.SiteNamed("local"); return err })
	w.write(again)
	w.view(func(tx *store.Tx) error {
		live, err := tx.Sites(store.Filter{})
		if len(live) != 1 || live[0].ID == w.site.ID || err != nil {
			t.Errorf("Sites = %v, %v", live, err)
		}
		all, err := tx.Sites(store.Filter{All: true})
		if len(all) != 2 || err != nil {
			t.Errorf("all Sites = %v, %v", all, err)
		}
		return nil
	})
}

func TestMoveSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		s, err := tx.MoveSite(w.site.ID, corral.SiteRemove, "no longer needed")
		if s.State != corral.SiteExiting || s.Reason != "no longer needed" {
			t.Errorf("moved to %+v", s)
		}
		return err
	})
	w.refused(corral.Conflict, func(tx *store.Tx) error {
		_, err := tx.MoveSite(w.site.ID, corral.SiteStaged, "")
		return err
	})
	want := "create >NEW, stage NEW>STAGING, staged STAGING>READY, remove READY>EXITING"
	if got := w.story(corral.ObjectSite, int64(w.site.ID)); got != want {
		t.Errorf("history = %s, want %s", got, want)
	}
}

func TestMoveSiteSettlesItsGlideins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waiting := w.createGlidein(w.newGlidein())
	active := w.createGlidein(w.newGlidein())
	w.attempt(active, submitted)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(w.site.ID, corral.SiteFail, "disk full"); return err })
	if g := w.glidein(waiting.ID); g.State != corral.GlideinFailed || g.Reason != "site is FAILED" {
		t.Errorf("waiting glidein is %s: %s", g.State, g.Reason)
	}
	if g := w.glidein(active.ID); g.State != corral.GlideinActive {
		t.Errorf("active glidein is %s: %s", g.State, g.Reason)
	}
}

func TestSetSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		s, err := tx.SetSite(w.site.ID, func(s *corral.Site) {
			s.Root, s.Package, s.PackageDigest, s.Platform.Arch = "/scratch", "embedded-1.0", "sha256:00", "aarch64"
		})
		if s.Root != "/scratch" || s.Package != "embedded-1.0" || s.Platform.Arch != "aarch64" {
			t.Errorf("set to %+v", s)
		}
		return err
	})
	for name, fn := range map[string]func(*corral.Site){
		"id":    func(s *corral.Site) { s.ID++ },
		"name":  func(s *corral.Site) { s.Name = "other" },
		"owner": func(s *corral.Site) { s.Owner = "eve" },
		"state": func(s *corral.Site) { s.State = corral.SiteFailed },
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(corral.Internal, func(tx *store.Tx) error { _, err := tx.SetSite(w.site.ID, fn); return err })
		})
	}
}

func TestSitesPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		for _, name := range []string{"b", "c", "d"} {
			if _, err := tx.CreateSite(newSite(name)); err != nil {
				return err
			}
		}
		return nil
	})
	w.view(func(tx *store.Tx) error {
		var names []string
		page := store.Page{Limit: 3}
		for {
			sites, err := tx.Sites(store.Filter{Page: page})
			if err != nil || len(sites) == 0 {
				if diff := cmp.Diff([]string{"local", "b", "c", "d"}, names); diff != "" {
					t.Error(diff)
				}
				return err
			}
			for _, s := range sites {
				names = append(names, s.Name)
				page.After = int64(s.ID)
			}
		}
	})
}

// A site is served as long as parts of it may be left, and causes no work after that.
func TestSitesToServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var setup corral.Job
	w.write(func(tx *store.Tx) (err error) {
		if _, err = tx.CreateSite(newSite("other")); err != nil {
			return err
		}
		if setup, err = tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"}); err != nil {
			return err
		}
		_, err = tx.MoveSite(w.site.ID, corral.SiteForget, "gone")
		return err
	})
	served := func() (names []string) {
		w.view(func(tx *store.Tx) error {
			sites, err := tx.SitesToServe()
			for _, s := range sites {
				names = append(names, s.Name)
			}
			return err
		})
		return names
	}
	if got := served(); !slices.Equal(got, []string{"local", "other"}) {
		t.Errorf("with a job left, %v are served", got)
	}
	w.move(setup, ended(corral.OutcomeLost))
	if got := served(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("with nothing left, %v are served", got)
	}
}
