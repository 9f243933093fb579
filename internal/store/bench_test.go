package store_test

import (
	"fmt"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/resubmit"
)

// fill creates many glideins at the world's site, each with live attempts.
func (w *world) fill(glideins, attemptsEach int) (ids []corral.GlideinID) {
	w.write(func(tx *store.Tx) error {
		for i := range glideins {
			g := w.newGlidein()
			g.Resubmit.Mode = resubmit.Forever
			g.Labels = map[string]string{"n": fmt.Sprint(i)}
			g, err := tx.CreateGlidein(g)
			if err != nil {
				return err
			}
			ids = append(ids, g.ID)
			for range attemptsEach {
				if _, err := tx.CreateJob(newPilot(g)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return ids
}

// BenchmarkMoveJob measures one Write: an attempt moves, its glidein is settled, two lines of history.
func BenchmarkMoveJob(b *testing.B) {
	w := newWorld(b)
	ids := w.fill(2000, 2)
	life := []corral.JobEvent{submitted, {Move: corral.JobQueue}, started, ended(corral.OutcomeExpired)}
	var j corral.Job
	i := 0
	for b.Loop() {
		if i%len(life) == 0 {
			b.StopTimer()
			j = w.attempt(corral.Glidein{ID: ids[i%len(ids)], Site: w.site.ID})
			b.StartTimer()
		}
		w.move(j, life[i%len(life)])
		i++
	}
}

// BenchmarkGlideins measures a View of all live glideins of a site, with their attempts, and of all its
// live jobs.
func BenchmarkGlideins(b *testing.B) {
	w := newWorld(b)
	w.fill(2000, 2)
	w.fill(100, 10)
	for b.Loop() {
		w.view(func(tx *store.Tx) error {
			gs, err := tx.Glideins(store.GlideinFilter{Site: w.site.ID, Live: true})
			if err != nil || len(gs) != 2100 {
				b.Fatal(len(gs), err)
			}
			js, err := tx.Jobs(store.JobFilter{Site: w.site.ID, Live: true})
			if err != nil || len(js) != 5000 {
				b.Fatal(len(js), err)
			}
			return nil
		})
	}
}
