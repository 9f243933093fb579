//go:build soak

package engine

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/resubmit"
)

// A day at a site.
const (
	dayGlideins   = 25 // per site
	dayAttempts   = 4  // per glidein: at twenty sites, 2,000 pilots in all
	dayWalltime   = 7 * time.Hour / 2
	dayWork       = 23 * time.Hour // then what is left is removed
	dayFaultShare = 0.01
	dayCrashes    = 12 // in the middle of a command at the site; some coincide: at twenty sites, over 200
)

// A dayOf is a corrald without its ports: the engine over its store, which dies from time to time and is restarted.
type dayOf struct {
	t     *testing.T
	lg    *slog.Logger
	dir   string
	farms map[string]*farm

	mu      sync.Mutex // guards the fields below
	db      *store.DB
	crashed func()
	crashes int
}

// Twenty-four hours of two sites, or SITES, at which one command in a hundred fails, and of an engine that is killed
// during a dozen commands at each: everything ends properly, nothing is left anywhere, nothing existed twice, and the
// pilots' usage is recorded as if nothing had happened. Everything is real except the sites and the clock.
func TestADayOfSites(t *testing.T) {
	t.Parallel()
	sites, err := strconv.Atoi(os.Getenv("SITES"))
	if err != nil {
		sites = 2
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := &dayOf{t: t, lg: slog.New(slog.DiscardHandler), dir: dir, farms: map[string]*farm{}}
		began := time.Now()
		for i := range sites {
			f := newFarm(uint64(i), dayFaultShare)
			f.drop, f.drops = d.drop, dayCrashes
			d.farms[contactOf(i)] = f
		}
		d.open()
		ctx, end := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); d.serve(ctx) }()
		d.ask()
		<-time.After(time.Until(began.Add(dayWork)))
		d.remove()
		d.until("all sites to be gone", func(tx *store.Tx) (bool, error) {
			left, err := tx.SitesToServe()
			return len(left) == 0, err
		})
		d.check(began)
		t.Logf("%s of virtual time, %d crashes", time.Since(began), d.crashes)
		end()
		<-over
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := d.db.Close(); err != nil {
			t.Error(err)
		}
	})
}

func contactOf(i int) string { return fmt.Sprintf("ssh://site%d", i) }

func (d *dayOf) open() {
	db, err := store.Open(d.t.Context(), filepath.Join(d.dir, "corral.db"))
	if err != nil {
		d.t.Error(err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.db = db
}

// drop ends the engine like a crash: its memory is lost, and its current commands get no answer.
func (d *dayOf) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed != nil {
		d.crashed()
		d.crashes++
	}
}

// serve runs an engine, and another one over the same store after each crash.
func (d *dayOf) serve(ctx context.Context) {
	for ctx.Err() == nil {
		running, crash := context.WithCancel(ctx)
		d.mu.Lock()
		db := d.db
		d.crashed = crash
		d.mu.Unlock()
		clusters := admission.NewClusters(d.lg, db, nil, dispatch.Config{})
		way := siteaccess.New(d.backends(), "soak")
		err := New(d.lg, db, clusters, Config{Key: admission.Key("nobody dials"), Address: nowhere{}, Reach: way,
			Prober: siteaccess.NewProber(d.lg, db, way, nowhere{}), Catalog: delivery.NewCatalog(d.lg, db, stock, nil), Poll: 30 * time.Second}).Run(running)
		if err != nil && running.Err() == nil {
			d.t.Errorf("the engine ended: %v", err)
		}
		clusters.Close()
		way.Close()
		crash()
		if ctx.Err() != nil {
			return
		}
		d.mu.Lock()
		err = db.Close()
		d.mu.Unlock()
		if err != nil {
			d.t.Error(err)
		}
		d.open()
	}
}

type nowhere struct{}

func (nowhere) For(corral.Site) ([]string, string, error) {
	return []string{"unix:/nonexistent"}, "", nil
}

func (nowhere) Dial(context.Context) (net.Conn, error) { return nil, net.ErrClosed }

func (d *dayOf) backends() gridsite.Backends {
	return gridsite.Backends{
		Transports: map[string]gridsite.Dialer{"ssh": func(_, contact string) (gridsite.Conn, error) { return d.farms[contact], nil }},
		Dialects: map[string]func(gridsite.Conn, string) gridsite.Batch{
			"fork": func(conn gridsite.Conn, _ string) gridsite.Batch { return conn.(*farm) }},
		Head: func(conn gridsite.Conn, _ string) gridsite.Head { return farmHead{conn.(*farm)} },
	}
}

// write changes the store like a person who tries again while corrald is down.
func (d *dayOf) write(fn func(tx *store.Tx) error) {
	for range 1000 {
		d.mu.Lock()
		err := storetest.All(d.db).Write(d.t.Context(), "soak", fn)
		d.mu.Unlock()
		if err == nil {
			return
		}
		if corral.KindOf(err) != corral.Unavailable {
			d.t.Errorf("writing: %v", err)
			return
		}
		<-time.After(time.Second)
	}
	d.t.Error("the store takes nothing")
}

func (d *dayOf) view(fn func(tx *store.Tx) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := storetest.All(d.db).View(d.t.Context(), fn); err != nil && corral.KindOf(err) != corral.Unavailable {
		d.t.Errorf("reading: %v", err)
	}
}

// ask creates the sites and requests glideins over the first hours.
func (d *dayOf) ask() {
	d.write(func(tx *store.Tx) error {
		_, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "soak", Kind: corral.Embedded})
		for i := 0; i < len(d.farms) && err == nil; i++ {
			_, err = tx.CreateSite(corral.Site{Name: fmt.Sprintf("site%d", i), Owner: "soak", Contact: contactOf(i), Batch: "fork", Root: "/corral"})
		}
		return err
	})
	for i := range dayGlideins {
		wanted := time.Now().Add(time.Duration(i%3) * reconcile.Ahead) // the site's loop sees some of them at once
		d.write(func(tx *store.Tx) error {
			sites, err := tx.Sites(store.Filter{})
			for _, s := range sites {
				if err == nil {
					_, err = tx.CreateGlidein(corral.Glidein{Owner: "soak", Site: s.ID, Cluster: 1, Hosts: 1, CPUs: 2, MemoryMiB: 1, Broker: corral.BrokerNone, NotBefore: wanted,
						Walltime: corral.Seconds(dayWalltime), Resubmit: resubmit.Policy{Mode: resubmit.Times, Limit: dayAttempts - 1, Retries: 100}})
				}
			}
			return err
		})
		<-time.After(6 * time.Minute)
	}
}

// remove requests the end of everything, like `corral site remove`.
func (d *dayOf) remove() {
	d.write(func(tx *store.Tx) error {
		all, err := tx.Glideins(store.GlideinFilter{})
		for _, g := range all {
			if err == nil && g.State != corral.GlideinDeleted {
				_, err = tx.AskGlidein(g.ID, corral.AskCancel, "the day is over")
			}
		}
		sites, e := tx.Sites(store.Filter{})
		for _, s := range sites {
			if err == nil && e == nil {
				_, err = tx.MoveSite(s.ID, corral.SiteRemove, "the day is over")
			}
		}
		return err
	})
}

func (d *dayOf) until(what string, ok func(*store.Tx) (bool, error)) {
	for range 24 * 60 {
		done := false
		d.view(func(tx *store.Tx) (err error) { done, err = ok(tx); return err })
		if done {
			return
		}
		<-time.After(time.Minute)
	}
	d.t.Errorf("%s: not within a day", what)
}

// check expects that nothing is left or duplicated, and that the records match the farms.
func (d *dayOf) check(began time.Time) {
	pilots, faults := 0, 0
	for contact, f := range d.farms {
		for _, left := range f.left(time.Now()) {
			d.t.Errorf("%s: %s", contact, left)
		}
		pilots, faults = pilots+f.ever, faults+f.faults
	}
	var jobs []corral.Job
	var held []usage.Attempt
	d.view(func(tx *store.Tx) (err error) {
		if jobs, err = tx.Jobs(store.JobFilter{Kind: corral.PilotJob}); err == nil {
			held, err = tx.Holdings(usage.NewWindow(began, time.Time{}, tx.Now()))
		}
		return err
	})
	for _, j := range jobs {
		if j.Live() {
			d.t.Errorf("%s of glidein %d is %s", j.Tag, j.Glidein, j.State)
		}
	}
	d.checkBooks(jobs, held)
	d.t.Logf("%d pilots, %d attempts, %d attempts that held cores; %d commands went wrong", pilots, len(jobs), len(held), faults)
	if pilots < len(d.farms)*dayGlideins*dayAttempts*9/10 {
		d.t.Errorf("%d pilots, which is too few for a day", pilots)
	}
}

// checkBooks compares the record of each attempt with its farm's: they differ by at most one poll interval.
func (d *dayOf) checkBooks(jobs []corral.Job, held []usage.Attempt) {
	ran := map[string]farmJob{}
	for _, f := range d.farms {
		for tag, j := range f.all {
			ran[tag] = *j
		}
	}
	counted := map[corral.JobID]usage.Attempt{}
	for _, a := range held {
		if counted[a.ID].ID != 0 {
			d.t.Errorf("attempt %d is in the books twice", a.ID)
		}
		counted[a.ID] = a
	}
	off := time.Duration(0)
	for _, j := range jobs {
		was, a := ran[j.Tag], counted[j.ID]
		took := max(0, was.ends.Sub(was.starts))
		diff := (a.To.Sub(a.From) - took).Abs()
		if off = max(off, diff); diff > pollNothing {
			d.t.Errorf("%s ran for %s, and the books say %s", j.Tag, took, a.To.Sub(a.From))
		}
		delete(ran, j.Tag)
	}
	for tag, j := range ran {
		if j.pilot {
			d.t.Errorf("%s is not in the books", tag)
		}
	}
	d.t.Logf("the books are off by %s at most", off)
}
