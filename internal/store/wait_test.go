package store_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A queue's history outlives its glideins and its site, and changes of the site's default queue.
func TestWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	queue := func(name string) {
		w.write(func(tx *store.Tx) error {
			_, err := tx.SetSite(w.site.ID, func(s *corral.Site) { s.Queue = name })
			return err
		})
	}
	own := w.newGlidein()
	own.Queue = "debug"
	plain, own := w.createGlidein(w.newGlidein()), w.createGlidein(own)
	w.attempt(plain, submitted, started, ended(corral.OutcomeIdle))
	queue("long")
	w.attempt(own, submitted)
	later := w.createGlidein(w.newGlidein())
	w.attempt(later, submitted, corral.JobEvent{Move: corral.JobQueue}, ended(corral.OutcomeRemoved))
	queue("short")
	w.attempt(w.createGlidein(w.newGlidein()))                                                                      // no answer yet
	w.attempt(w.createGlidein(w.newGlidein()), corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeFailed}) // refused
	w.write(func(tx *store.Tx) error {
		if _, err := tx.CreateJob(corral.Job{Kind: corral.SetupJob, Site: w.site.ID, Tag: "setup"}); err != nil {
			return err
		}
		if _, err := tx.MoveSite(w.site.ID, corral.SiteForget, "test"); err != nil {
			return err
		}
		_, err := readySite(tx, w.site.Name)
		return err
	})

	wait := func(queue string, o corral.Outcome) corral.Wait {
		return corral.Wait{Site: "local", Queue: queue, Hosts: 2, CPUs: 4, MemoryMiB: 2048,
			Walltime: corral.Seconds(time.Hour), Outcome: o}
	}
	all := []corral.Wait{wait("", corral.OutcomeIdle), wait("debug", ""), wait("long", corral.OutcomeRemoved)}
	for _, tt := range []struct {
		name string
		f    store.WaitFilter
		want []corral.Wait
	}{
		{"all", store.WaitFilter{}, all},
		{"of the name", store.WaitFilter{Name: "local"}, all},
		{"of the site that had it", store.WaitFilter{Site: w.site.ID}, all},
		{"of the site that has it now", store.WaitFilter{Site: w.site.ID + 1}, nil},
		{"of another name", store.WaitFilter{Name: "elsewhere"}, nil},
		{"the last two", store.WaitFilter{Last: 2}, all[1:]},
	} {
		w.view(func(tx *store.Tx) error {
			got, err := tx.Waits(tt.f)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreTypes(time.Time{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
			for _, g := range got {
				if g.SubmittedAt.IsZero() || (g.Outcome == corral.OutcomeIdle) == g.StartedAt.IsZero() || (g.Outcome == "") != g.EndedAt.IsZero() {
					t.Errorf("%s: times of %+v", tt.name, g)
				}
			}
			return err
		})
	}
}

// TestWaitsTellOfTheJob: a wait contains the other attributes of the request, the name of the default queue if none
// was named, and the time of the first worker.
func TestWaitsTellOfTheJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(w.site.ID, func(s *corral.Site) {
			s.Account, s.QOS = "physics", "slow"
			s.Facts = &corral.SiteFacts{Queues: []corral.SiteQueue{{Name: "debug"}, {Name: "long", Default: true}}}
		})
		return err
	})
	g := w.newGlidein()
	g.GPUs, g.QOS, g.Constraint = 2, "fast", "ib"
	job := w.attempt(w.createGlidein(g), submitted, started)
	for _, n := range []int{1, 2} {
		w.write(func(tx *store.Tx) error {
			_, err := tx.NoteWorkers(job.ID, n)
			return err
		})
	}
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(corral.ObjectJob, int64(job.ID), store.Page{})
		if err != nil {
			return err
		}
		var first time.Time
		for _, e := range entries {
			if e.Event == "workers" && first.IsZero() {
				first = e.At
			}
		}
		waits, err := tx.Waits(store.WaitFilter{})
		if err != nil || len(waits) != 1 {
			t.Fatalf("%d waits, %v, want 1", len(waits), err)
		}
		got := waits[0]
		want := corral.Wait{Site: "local", Default: "long", Account: "physics", QOS: "fast", Constraint: "ib", Hosts: g.Hosts,
			CPUs: g.CPUs, MemoryMiB: g.MemoryMiB, GPUs: 2, Walltime: g.Walltime, SubmittedAt: got.SubmittedAt,
			StartedAt: got.StartedAt, WorkersAt: first}
		if diff := cmp.Diff(want, got); diff != "" || first.IsZero() {
			t.Errorf("workers at %s (-want +got):\n%s", first, diff)
		}
		return nil
	})
}
