package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
	"pgregory.net/rapid"
)

// With any number of concurrent requests, and attempts that end in between, a site never exceeds a limit by even one
// attempt, and a request is refused only if it would.
func TestLimitsHoldAgainstAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		const writers = 4
		var site corral.Site
		limits := corral.SiteLimits{MaxQueued: rapid.IntRange(0, 4).Draw(rt, "max queued"), MaxRunning: rapid.IntRange(0, 6).Draw(rt, "max running")}
		submit := rapid.IntRange(0, 6).Draw(rt, "max submit")
		var glideins []corral.Glidein
		w.write(func(tx *store.Tx) (err error) {
			if site, err = readySite(tx, fmt.Sprint("limited-", tags.Add(1))); err != nil {
				return err
			}
			site, err = tx.SetSite(site.ID, func(s *corral.Site) {
				s.Limits, s.Facts = limits, &corral.SiteFacts{MaxSubmit: submit}
			})
			for range writers {
				g := w.newGlidein()
				g.Site, g.Resubmit.Mode = site.ID, resubmit.Forever
				if g, err = tx.CreateGlidein(g); err != nil {
					return err
				}
				glideins = append(glideins, g)
			}
			return err
		})
		scripts := make([][]string, writers) // drawn first: a property's source must be used by one goroutine
		for i := range scripts {
			scripts[i] = rapid.SliceOfN(rapid.SampledFrom([]string{"create", "create", "start", "end"}), 1, 12).Draw(rt, "script")
		}
		var all sync.WaitGroup
		wrong := make(chan string, writers)
		for i, script := range scripts {
			all.Go(func() {
				if err := ask(w, site, glideins[i], script); err != nil {
					wrong <- err.Error()
				}
			})
		}
		all.Wait()
		close(wrong)
		for text := range wrong {
			rt.Fatal(text)
		}
	})
}

// ask performs a script's steps with attempts of a glidein, and checks the limits within each transaction.
func ask(w *world, site corral.Site, g corral.Glidein, script []string) error {
	var mine []corral.JobID
	for _, what := range script {
		err := storetest.All(w.db).Write(w.t.Context(), actor, func(tx *store.Tx) error {
			before, err := loadOf(tx, site.ID)
			if err != nil {
				return err
			}
			switch {
			case what == "create":
				j, err := tx.CreateJob(newPilot(g))
				if full := site.Full(before) != ""; full != (corral.KindOf(err) == corral.Conflict) {
					return fmt.Errorf("with %+v, limits %+v: %w", before, site.Limits, err)
				} else if !full {
					mine = append(mine, j.ID)
				}
			case len(mine) == 0:
			case what == "start":
				_, err = tx.MoveJob(mine[0], started)
				if corral.KindOf(err) == corral.Conflict { // it is running
					err = nil
				}
			default:
				_, err = tx.MoveJob(mine[0], ended(corral.OutcomeExpired))
				mine = mine[1:]
			}
			if err != nil {
				return err
			}
			return within(tx, site)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// loadOf counts the attempts that the store lists, independently of Load.
func loadOf(tx *store.Tx, site corral.SiteID) (l corral.Load, err error) {
	jobs, err := tx.Jobs(store.JobFilter{Site: site})
	for i := range jobs {
		l = l.Add(&jobs[i])
	}
	return l, err
}

func within(tx *store.Tx, site corral.Site) error {
	l, err := loadOf(tx, site.ID)
	live, m := l.Queued+l.Running, site.Limits
	if err == nil && (m.MaxQueued > 0 && l.Queued > m.MaxQueued || m.MaxRunning > 0 && live > m.MaxRunning || site.Facts.MaxSubmit > 0 && live > site.Facts.MaxSubmit) {
		return fmt.Errorf("%+v is above the limits %+v, %d", l, m, site.Facts.MaxSubmit)
	}
	return err
}

func TestLimitIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(w.site.ID, func(s *corral.Site) { s.Limits.MaxQueued = 1 })
		return err
	})
	first, second := w.createGlidein(w.newGlidein()), w.createGlidein(w.newGlidein())
	j := w.attempt(first)
	err := storetest.All(w.db).Write(t.Context(), actor, func(tx *store.Tx) error { _, err := tx.CreateJob(newPilot(second)); return err })
	if corral.KindOf(err) != corral.Conflict || err.Error() != "limit max_queued of site local: 1 of 1 attempts wait" {
		t.Errorf("one above the limit: %v", err)
	}
	w.write(func(tx *store.Tx) error { // setup jobs are not attempts
		_, err := tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"})
		return err
	})
	w.move(j, submitted, started)
	w.attempt(second)
}
