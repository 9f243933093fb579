package store_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

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

// BenchmarkMoveJob measures one Write: an attempt moves, its glidein is settled, two history entries are written.
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

// past adds ended attempts to the world's site, each with its own glidein, which one of the plans has requested.
func (w *world) past(attempts, plans int) {
	w.t.Helper()
	g := w.createGlidein(w.newGlidein())
	j := w.attempt(g)
	w.backdate(j, time.Now().Add(-2*time.Hour), time.Hour)
	w.copies("glideins", int64(g.ID), attempts, map[string]string{"state": "'FINISHED'", "not_before_at_ms": "null",
		"labels": fmt.Sprintf("json_object('plan', cast(1 + i %% %d as text))", plans)})
	w.copies("jobs", int64(j.ID), attempts, map[string]string{"glidein_id": "glidein_id + i", "tag": "tag || '-' || i",
		"ended_at_ms": "ended_at_ms - i"})
}

// copies adds count copies of a row. The i-th copy has the row's id plus i and differs in the columns of but.
func (w *world) copies(table string, id int64, count int, but map[string]string) {
	w.t.Helper()
	db := raw(w.t, w.path)
	rows, err := db.Query("select name from pragma_table_info(?) where name <> 'id'", table)
	if err != nil {
		w.t.Fatal(err)
	}
	var columns, values []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			w.t.Fatal(err)
		}
		columns, values = append(columns, name), append(values, cmp.Or(but[name], name))
	}
	_, err = db.Exec(fmt.Sprintf(`with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
		insert into %[1]s (id, %[2]s) select id + i, %[3]s from n, %[1]s where id = ?`, table,
		strings.Join(columns, ", "), strings.Join(values, ", ")), count, id)
	if err != nil {
		w.t.Fatal(err)
	}
}

// BenchmarkLedger measures the ledger queries that each check of a plan, and each reservation, makes for a site with
// many past attempts.
func BenchmarkLedger(b *testing.B) {
	for _, attempts := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(attempts), func(b *testing.B) {
			w := newWorld(b)
			w.past(attempts, 100)
			plan := w.begun()
			w.write(w.reserve(plan, w.site, ch))
			for b.Loop() {
				w.ledger(w.site)
			}
		})
	}
}
