package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
)

// longLives is a store with one READY site, and a loop for it that is not running.
type longLives struct {
	testing.TB
	db   *store.DB
	loop *siteLoop
	tags int
}

func newLongLives(t testing.TB) *longLives {
	t.Helper()
	l := &longLives{TB: t, db: storetest.OpenTest(t)}
	l.write(func(tx *store.Tx) error {
		if _, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded}); err != nil {
			return err
		}
		s, err := tx.CreateSite(corral.Site{Name: "here", Owner: "local", Contact: "local:", Batch: "fork", Root: "/nowhere"})
		for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
			if err == nil {
				s, err = tx.MoveSite(s.ID, move, "test")
			}
		}
		return err
	})
	lg := slog.New(slog.DiscardHandler)
	way := siteaccess.New(backends(""), "")
	e := New(lg, l.db, admission.NewClusters(lg, l.db, nil, dispatch.Config{}), Config{
		Reach: way, Prober: siteaccess.NewProber(lg, l.db, way, unixSocket("")), Catalog: delivery.NewCatalog(lg, l.db, stock, nil),
	})
	l.loop = newSiteLoop(e, corral.Site{ID: 1, Owner: "local"})
	return l
}

func (l *longLives) write(fn func(*store.Tx) error) {
	l.Helper()
	if err := storetest.All(l.db).Write(l.Context(), "local", fn); err != nil {
		l.Fatal(err)
	}
}

func (l *longLives) glidein(g corral.Glidein) corral.Glidein {
	l.Helper()
	g.Owner, g.Site, g.Cluster, g.Hosts, g.CPUs, g.MemoryMiB = "local", 1, 1, 1, 1, 64
	l.write(func(tx *store.Tx) (err error) { g, err = tx.CreateGlidein(g); return err })
	return g
}

// attempt gives a glidein another attempt, which may end at once, unless the glidein has ended.
func (l *longLives) attempt(tx *store.Tx, id corral.GlideinID, events ...corral.JobEvent) error {
	l.tags++
	j, err := tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: 1, Glidein: id, Tag: fmt.Sprint("tag-", l.tags)})
	if corral.KindOf(err) == corral.Conflict {
		return nil
	}
	for _, e := range events {
		if err == nil {
			j, err = tx.MoveJob(j.ID, e)
		}
	}
	return err
}

func (l *longLives) load() reconcile.World {
	l.Helper()
	w, err := l.loop.load(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return w
}

// BenchmarkLoad measures the load at the beginning of each step of a site where one glidein has had 5,000 attempts.
func BenchmarkLoad(b *testing.B) {
	l := newLongLives(b)
	g := l.glidein(corral.Glidein{Resubmit: resubmit.Policy{Mode: resubmit.Forever}, Walltime: corral.Seconds(time.Hour)})
	l.write(func(tx *store.Tx) error {
		for range 5000 {
			if err := l.attempt(tx, g.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired}); err != nil {
				return err
			}
		}
		return l.attempt(tx, g.ID)
	})
	b.ReportAllocs()
	for b.Loop() {
		l.load()
	}
}
