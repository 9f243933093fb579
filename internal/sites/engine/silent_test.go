package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
)

// A site that does not answer is reported after a while, together with the objects that wait for it; later the
// question is abandoned.
func TestSilenceIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storetest.OpenTest(t)
		var site corral.Site
		var g corral.Glidein
		write := func(fn func(tx *store.Tx) error) {
			if err := storetest.All(db).Write(t.Context(), "local", fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *store.Tx) (err error) {
			site, err = tx.CreateSite(corral.Site{Name: "hpc", Owner: "local", Contact: "local:", Batch: "slurm", Root: "/r"})
			for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
				if err == nil {
					site, err = tx.MoveSite(site.ID, move, "")
				}
			}
			var c corral.Cluster
			if err == nil {
				c, err = tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
			}
			if err == nil {
				g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: site.ID, Cluster: c.ID,
					Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}})
			}
			if err == nil {
				_, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: site.ID, Glidein: g.ID, Tag: "corral-pilot-1"})
			}
			return err
		})
		l := &line{lg: slog.New(slog.DiscardHandler), db: db.Owner("local"), id: site.ID}
		begin := time.Now()
		asked, done := l.asking(t.Context(), "submitting attempt 1 of glidein 1")
		<-time.After(slowAfter)
		synctest.Wait()
		const told = "the site has given no answer for 20s (submitting attempt 1 of glidein 1)"
		now, err := store.Read(t.Context(), storetest.All(db), func(tx *store.Tx) (corral.Site, error) { return tx.Site(site.ID) })
		if err != nil || now.Trouble.Why != told {
			t.Errorf("trouble %+v, %v; want %q", now.Trouble, err, told)
		}
		g, err = store.Read(t.Context(), storetest.All(db), func(tx *store.Tx) (corral.Glidein, error) { return tx.Glidein(g.ID) })
		if state, why := g.Shown(); err != nil || state != "NEW" || !strings.HasSuffix(why, told) {
			t.Errorf("people are shown %s, %q, %v", state, why, err)
		}
		<-asked.Done()
		if took := time.Since(begin); took != answerTime || corral.KindOf(context.Cause(asked)) != corral.Unavailable {
			t.Errorf("given up after %s: %v", took, context.Cause(asked))
		}
		done()

		write(func(tx *store.Tx) error {
			_, err := tx.SetSite(site.ID, func(s *corral.Site) { s.Trouble = corral.SiteTrouble{} })
			return err
		})
		_, done = l.asking(t.Context(), "polling its jobs")
		done() // in time
		<-time.After(slowAfter)
		if now, err := store.Read(t.Context(), storetest.All(db), func(tx *store.Tx) (corral.Site, error) { return tx.Site(site.ID) }); err != nil || now.Trouble.Why != "" {
			t.Errorf("trouble %+v, %v, after an answer in time", now.Trouble, err)
		}
	})
}

// hung never answers a poll, like a hanging file system.
type hung struct {
	gridsite.Batch
	now *atomic.Bool
}

func (h hung) Poll(ctx context.Context, tags []string) (map[string]gridsite.JobStatus, error) {
	if h.now.Load() {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return h.Batch.Poll(ctx, tags)
}

// A site with a hanging file system delays no other site.
func TestHungSiteStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var hangs atomic.Bool
	hangs.Store(true)
	b := backends("")
	real := b.Dialects["fork"]
	b.Dialects["fork"] = func(conn gridsite.Conn, root string) gridsite.Batch {
		if strings.HasSuffix(root, "/hung") {
			return hung{real(conn, root), &hangs}
		}
		return real(conn, root)
	}
	w.reaches(b)
	w.start()
	bad, good := w.site("hung"), w.site("good")
	w.siteIs(good.ID, corral.SiteReady)
	w.glidein(good.ID, resubmit.Policy{})
	w.untilWorkers("a worker", func(all []corral.Worker) bool { return len(all) == 1 })
	w.until("people to be told", func() bool {
		return strings.Contains(w.siteNow(bad.ID).Trouble.Why, "has given no answer for 20s (polling its jobs)")
	})
}
