package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

func (w *world) askRemoval(id corral.SiteID) {
	w.t.Helper()
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(id, corral.SiteRemove, "test"); return err })
}

// The root of a site that was forgotten by force may be used again.
func TestRootOfForgottenSiteIsUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(s.ID, corral.SiteForget, "test"); return err })
	if err := w.cfg.Reach.CheckSite(context.Background(), s, false); err != nil {
		t.Errorf("its root again: %v", err)
	}
}

// A root of another corrald's site is neither taken over nor shared: the first of the two to remove its site would
// remove the other's.
func TestRootOfAnotherCorrald(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	other := siteaccess.New(backends(""), admission.Key("of another").Owner())
	for _, root := range []string{s.Root, filepath.Join(s.Root, "below", "it")} {
		err := other.CheckSite(t.Context(), corral.Site{Contact: "local:", Batch: "fork", Root: root}, false)
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), "another corrald, that of ") {
			t.Errorf("root %s: %v, want Invalid that says whose it is", root, err)
		}
	}
}

// If a site's root was purged, the package is installed again, and the glidein gets its next attempt.
func TestPurgedSiteIsStagedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	if err := os.RemoveAll(s.Root); err != nil {
		t.Fatal(err)
	}
	g := w.glidein(s.ID, resubmit.Policy{Retries: 1})
	w.untilWorkers("a worker", func(all []corral.Worker) bool { return len(all) == 1 })
	if n := len(w.glideinNow(g.ID).Attempts); n != 2 {
		t.Errorf("%d attempts, want one that missed the package and another", n)
	}
	if jobs := w.jobs(store.JobFilter{Site: s.ID, Kind: corral.SetupJob}); len(jobs) != 2 {
		t.Errorf("%d setup jobs, want two", len(jobs))
	}
	if _, err := os.Stat(filepath.Join(s.Root, ".corral-site")); err != nil {
		t.Errorf("the root has no mark any more: %v", err)
	}
}

// A site that failed before anything was copied there can be removed all the same, and files that others have since
// put below its root are left alone.
func TestFailedSiteIsRemoved(t *testing.T) {
	t.Parallel()
	t.Run("no package for its platform", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.cfg.Catalog = delivery.NewCatalog(w.lg, w.db, delivery.OpenDepot(t.TempDir(), signer), nil)
		w.start()
		s := w.site("here")
		w.siteIs(s.ID, corral.SiteFailed)
		others := filepath.Join(s.Root, "file")
		if err := errors.Join(os.MkdirAll(s.Root, 0o700), os.WriteFile(others, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		w.askRemoval(s.ID)
		w.siteIs(s.ID, corral.SiteDeleted)
		if _, err := os.Lstat(others); err != nil {
			t.Errorf("what others put there: %v", err)
		}
	})
	t.Run("its root cannot be created", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if err := os.WriteFile(filepath.Join(w.dir, "here"), nil, 0o600); err != nil { // a file, not a directory
			t.Fatal(err)
		}
		w.start()
		s := w.site("here")
		w.siteIs(s.ID, corral.SiteFailed)
		w.askRemoval(s.ID)
		w.siteIs(s.ID, corral.SiteDeleted)
		if _, err := os.Lstat(s.Root); err != nil {
			t.Errorf("the file in its place: %v", err)
		}
	})
}

// A glidein that still waits when its site is removed is deleted with it, even before it was first examined: it has
// not failed.
func TestWaitingGlideinGoesWithItsSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	var g corral.Glidein
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: s.ID, Cluster: 1,
			Shape:     corral.Shape{Hosts: 1, CPUs: 1, MemoryMiB: 1, Walltime: corral.Seconds(time.Minute)},
			NotBefore: time.Now().Add(2 * reconcile.Ahead)})
		return err
	})
	w.askRemoval(s.ID)
	w.siteIs(s.ID, corral.SiteDeleted)
	if got := w.glideinNow(g.ID); got.State != corral.GlideinDeleted {
		t.Errorf("the glidein is %s (%s), want DELETED", got.State, got.Reason)
	}
}

// A site that was removed by force and does not answer delays nothing: its glideins are deleted at once, and a pilot
// that still runs there notices by itself that it is no longer wanted.
func TestForgottenSiteThatIsSilent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var silent atomic.Bool
	w.fault = func(b gridsite.Batch) gridsite.Batch { return cut{b, &silent} }
	stop := w.start()
	s := w.site("here")
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	silent.Store(true)
	w.write(func(tx *store.Tx) error {
		if _, err := tx.AskGlidein(g.ID, corral.AskCancel, "test"); err != nil {
			return err
		}
		_, err := tx.MoveSite(s.ID, corral.SiteForget, "test")
		return err
	})
	w.until("the glidein is gone", func() bool { return w.glideinNow(g.ID).State == corral.GlideinDeleted })
	a := w.glideinNow(g.ID).Attempts[0]
	if a.Outcome != corral.OutcomeLost || !strings.Contains(a.Reason, "may still run it") {
		t.Errorf("its attempt ended as %s (%s), want lost, and that the site may still run it", a.Outcome, a.Reason)
	}
	stop()
	w.start() // the pilot must be able to reconnect
	access, err := w.faultless().Open(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		jobs, err := access.Pilots.Poll(context.Background(), []string{a.Tag})
		if err == nil && jobs[a.Tag].Phase == gridsite.Ended {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the pilot has not left within %s: %+v (%v)", patience, jobs, err)
		}
	}
}

// cut is a batch system that is unreachable while silent.
type cut struct {
	gridsite.Batch
	silent *atomic.Bool
}

func (c cut) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	if c.silent.Load() {
		return nil, errors.New("no route to host")
	}
	return c.Batch.Poll(ctx, tags)
}

func (c cut) Cancel(ctx context.Context, tag string, grace time.Duration) error {
	if c.silent.Load() {
		return errors.New("no route to host")
	}
	return c.Batch.Cancel(ctx, tag, grace)
}
