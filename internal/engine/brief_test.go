package engine

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/depot"
	"github.com/corral-pilot/corral/internal/gate"
	"github.com/corral-pilot/corral/internal/reach"
	"github.com/corral-pilot/corral/internal/reconcile"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
)

// longLives has a store with one READY site, and a loop for it that nobody runs.
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
	way := reach.New(backends(""), "")
	e := New(lg, l.db, gate.NewClusters(lg, l.db, dispatch.Config{}), Config{
		Reach: way, Prober: reach.NewProber(lg, l.db, way, unixSocket("")), Catalog: depot.NewCatalog(lg, l.db, stock, nil),
	})
	l.loop = newSiteLoop(e, 1)
	return l
}

func (l *longLives) write(fn func(*store.Tx) error) {
	l.Helper()
	if err := l.db.Write(l.Context(), "local", fn); err != nil {
		l.Fatal(err)
	}
}

func (l *longLives) glidein(g corral.Glidein) corral.Glidein {
	l.Helper()
	g.Owner, g.Site, g.Cluster, g.Hosts, g.CPUs, g.MemoryMiB = "local", 1, 1, 1, 1, 64
	l.write(func(tx *store.Tx) (err error) { g, err = tx.CreateGlidein(g); return err })
	return g
}

// attempt gives a glidein another attempt, which may end at once, unless it is over.
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

// Whatever has become of the attempts of glideins: what is decided of those that are read is what would be decided of all.
func TestNoDecisionNeedsAllAttempts(t *testing.T) {
	t.Parallel()
	l := newLongLives(t)
	policies := []resubmit.Policy{{}, {Retries: 2}, {Mode: resubmit.Times, Limit: 2, Retries: 3}, {Mode: resubmit.Times, Limit: 5, Retries: 3},
		{Mode: resubmit.Forever}, {Mode: resubmit.Forever, Retries: 30}, {Mode: resubmit.Until, Deadline: time.Now().Add(time.Minute), Retries: 1}}
	usual := slices.Repeat([]corral.Outcome{corral.OutcomeExpired, corral.OutcomeExpired, corral.OutcomeLost, ""}, 4) // others end most glideins
	rapid.Check(t, func(t *rapid.T) {
		g := l.glidein(corral.Glidein{
			Resubmit: rapid.SampledFrom(policies).Draw(t, "policy"), Walltime: corral.Seconds(time.Hour),
			Overlap: corral.Seconds(rapid.SampledFrom([]time.Duration{0, time.Minute, 59 * time.Minute}).Draw(t, "overlap")),
		})
		outcomes := rapid.SliceOfN(rapid.SampledFrom(slices.Concat(corral.Outcomes, usual)), 0, 12).Draw(t, "outcomes")
		l.write(func(tx *store.Tx) error {
			for _, o := range outcomes {
				life := []corral.JobEvent{{Move: corral.JobSubmit, SiteJobID: "4711"}, {Move: corral.JobStart}}
				if o != "" {
					life = append(life, corral.JobEvent{Move: corral.JobEnd, Outcome: o, Transient: rapid.Bool().Draw(t, "transient"), Reason: "drawn"})
				}
				if err := l.attempt(tx, g.ID, life...); err != nil {
					return err
				}
			}
			return nil
		})
		brief := l.load()
		whole := brief
		err := l.db.View(l.Context(), func(tx *store.Tx) (err error) {
			whole.Glideins, err = tx.Glideins(store.GlideinFilter{Site: 1, Live: true})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, 3 * time.Second, 2 * time.Minute, time.Hour, 8 * 24 * time.Hour} {
			now := time.Now().UTC().Add(after)
			if diff := cmp.Diff(reconcile.Decide(now, whole), reconcile.Decide(now, brief)); diff != "" {
				t.Fatalf("%s later something else is decided (-of all +in brief):\n%s", after, diff)
			}
			if want, got := reconcile.Due(now, whole), reconcile.Due(now, brief); !got.Equal(want) {
				t.Fatalf("%s later something is due at %s, of all at %s", after, got, want)
			}
		}
		l.write(func(tx *store.Tx) error { // out of the way of the next
			_, err := tx.AskGlidein(g.ID, corral.AskCancel, "test")
			for _, a := range liveJobs(brief) {
				if err == nil {
					_, err = tx.MoveJob(a.ID, corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeRemoved})
				}
			}
			return err
		})
	})
}

// BenchmarkLoad measures what each step of a site begins with, where one glidein has had 5,000 attempts.
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
