package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// actor is the actor of the tests' writes.
const actor = "ada"

// A world is a new database with a READY site and a cluster.
type world struct {
	t       testing.TB
	db      *store.DB
	path    string
	site    corral.Site
	cluster corral.Cluster
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "corral.db")}
	w.db = open(t, w.path)
	w.write(func(tx *store.Tx) (err error) {
		if w.site, err = readySite(tx, "local"); err != nil {
			return err
		}
		w.cluster, err = tx.CreateCluster(corral.Cluster{Name: "default", Owner: actor, Kind: corral.Embedded})
		return err
	})
	return w
}

func open(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// raw opens a database without the store, like a person with another program.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)"
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newSite(name string) corral.Site {
	return corral.Site{Name: name, Owner: actor, Contact: "local:", Batch: "fork", Root: "/srv/corral"}
}

func readySite(tx *store.Tx, name string) (corral.Site, error) {
	s, err := tx.CreateSite(newSite(name))
	if err != nil {
		return s, err
	}
	if s, err = tx.MoveSite(s.ID, corral.SiteStage, "first of all"); err != nil {
		return s, err
	}
	return tx.MoveSite(s.ID, corral.SiteStaged, "installed")
}

func (w *world) newGlidein() corral.Glidein {
	return corral.Glidein{Owner: actor, Site: w.site.ID, Cluster: w.cluster.ID,
		Shape: corral.Shape{Hosts: 2, CPUs: 4, MemoryMiB: 2048, Walltime: corral.Seconds(time.Hour)}}
}

var tags atomic.Int64

func newPilot(g corral.Glidein) corral.Job {
	return corral.Job{Kind: corral.PilotJob, Site: g.Site, Glidein: g.ID, Tag: fmt.Sprintf("tag-%d", tags.Add(1))}
}

func (w *world) write(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(w.t.Context(), actor, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) view(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).View(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// refused runs fn in a Write that must fail with an error of this kind.
func (w *world) refused(kind corral.Kind, fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(w.t.Context(), actor, fn); corral.KindOf(err) != kind {
		w.t.Fatalf("got error %v, want kind %s", err, kind)
	}
}

func (w *world) createGlidein(g corral.Glidein) corral.Glidein {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) { g, err = tx.CreateGlidein(g); return err })
	return g
}

// attempt creates a pilot job for g and applies events to it.
func (w *world) attempt(g corral.Glidein, events ...corral.JobEvent) corral.Job {
	w.t.Helper()
	j := newPilot(g)
	w.write(func(tx *store.Tx) (err error) { j, err = tx.CreateJob(j); return err })
	return w.move(j, events...)
}

func (w *world) move(j corral.Job, events ...corral.JobEvent) corral.Job {
	w.t.Helper()
	for _, e := range events {
		w.write(func(tx *store.Tx) (err error) { j, err = tx.MoveJob(j.ID, e); return err })
	}
	return j
}

func (w *world) glidein(id corral.GlideinID) (g corral.Glidein) {
	w.t.Helper()
	w.view(func(tx *store.Tx) (err error) { g, err = tx.Glidein(id); return err })
	return g
}

// story returns an object's history, each entry as "event from>to".
func (w *world) story(object string, id int64) string {
	w.t.Helper()
	var lines []string
	w.view(func(tx *store.Tx) error {
		entries, err := tx.History(object, id, store.Page{})
		for _, e := range entries {
			lines = append(lines, fmt.Sprintf("%s %s>%s", e.Event, e.From, e.To))
		}
		return err
	})
	return strings.Join(lines, ", ")
}

// Events that lead a job through its life.
var (
	submitted = corral.JobEvent{Move: corral.JobSubmit, SiteJobID: "4711"}
	started   = corral.JobEvent{Move: corral.JobStart}
)

func ended(o corral.Outcome) corral.JobEvent {
	return corral.JobEvent{Move: corral.JobEnd, Outcome: o, Reason: "as the test wants"}
}

// closed reports whether a channel of Changed is closed.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// create returns an error for tests of Open that must fail.
func create(ctx context.Context, path string) error {
	db, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	return db.Close()
}
