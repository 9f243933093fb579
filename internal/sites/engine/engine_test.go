package engine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/fork"
	"github.com/corral-pilot/corral/gridsite/headnode"
	"github.com/corral-pilot/corral/gridsite/local"
	"github.com/corral-pilot/corral/gridsite/slurm"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/internal/condor/condorpool"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/kit/programs"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/delivery"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/resubmit"
)

// stock holds the real pilot, built and packed once; signer has the key.
var (
	stock  *delivery.Depot
	signer packages.Signer
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "corral-engine-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if signer, err = packages.LoadSigner(filepath.Join(dir, "package.key")); err != nil {
			panic(err)
		}
		stock = delivery.OpenDepot(filepath.Join(dir, "cache"), signer)
		built, err := programs.Plain()
		if err != nil {
			panic(err)
		}
		binary, err := os.ReadFile(filepath.Join(built, "pilot"))
		if err != nil {
			panic(err)
		}
		if err := stock.AddPilot(binary, "x86_64"); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// A world is an engine over a real store, with real dispatchers behind a real worker port, for sites on this machine.
type world struct {
	t     *testing.T
	db    *store.DB
	dir   string
	cfg   Config
	lg    *slog.Logger
	fault func(gridsite.Batch) gridsite.Batch // wraps the batch systems that the engine uses

	clusters *admission.Clusters // of the engine that was started last
	current  atomic.Pointer[admission.Clusters]
	pools    *condorpool.Keepers // nil: no cluster of kind condor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "e") // short, because it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	key, err := admission.LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: storetest.OpenTest(t), dir: dir, lg: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	w.cfg = Config{Key: key, Address: unixSocket(filepath.Join(dir, "w")), Catalog: delivery.NewCatalog(w.lg, w.db, stock, nil)}
	w.reaches(backends(""))
	w.write(func(tx *store.Tx) error {
		_, err := tx.CreateCluster(corral.Cluster{Name: "default", Owner: "local", Kind: corral.Embedded})
		return err
	})
	return w
}

// reaches makes the engine reach the world's sites with these backends.
func (w *world) reaches(b gridsite.Backends) {
	w.cfg.Reach = siteaccess.New(b, w.cfg.Key.Owner())
	w.cfg.Prober = siteaccess.NewProber(w.lg, w.db, w.cfg.Reach, w.cfg.Address)
}

// failing returns backends whose batch systems have a fault.
func failing(b gridsite.Backends, fault func(gridsite.Batch) gridsite.Batch) gridsite.Backends {
	for name, dialect := range b.Dialects {
		b.Dialects[name] = func(conn gridsite.Conn, root string) gridsite.Batch { return fault(dialect(conn, root)) }
	}
	return b
}

// backends returns corrald's backends with the ssh files of a home directory; empty: the user's own.
func backends(home string) gridsite.Backends {
	return gridsite.Backends{
		Transports: map[string]gridsite.Dialer{
			"local": func(string, string) (gridsite.Conn, error) { return local.Conn{}, nil },
			"ssh":   func(_, contact string) (gridsite.Conn, error) { return ssh.New(contact, ssh.Options{Home: home}) },
		},
		Dialects: map[string]func(conn gridsite.Conn, root string) gridsite.Batch{
			"fork":  func(conn gridsite.Conn, root string) gridsite.Batch { return fork.New(conn, root) },
			"slurm": func(conn gridsite.Conn, root string) gridsite.Batch { return slurm.New(conn, root) },
		},
		Head: func(conn gridsite.Conn, root string) gridsite.Head { return headnode.New(conn, root) },
	}
}

type unixSocket string

func (s unixSocket) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", string(s))
}

func (s unixSocket) For(corral.Site) ([]string, string, error) {
	return []string{"unix:" + string(s)}, "", nil
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// start runs an engine until the returned function is called or the test ends.
func (w *world) start() (stop func()) {
	// Workers keep their tasks even on a busy machine.
	clusters := admission.NewClusters(w.lg, w.db, nil, dispatch.Config{Lease: 5 * time.Minute, Heartbeat: 3 * time.Second})
	w.clusters = clusters
	if w.pools != nil {
		clusters.UsePools(w.pools)
		w.current.Store(clusters)
	}
	if w.fault != nil {
		w.reaches(failing(backends(""), w.fault))
	}
	engine := New(w.lg, w.db, clusters, w.cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = engine.Run(ctx); done <- struct{}{} }()
	go func() {
		_ = port.New(w.lg, clusters, broker.Reach).ServeUnix(ctx, string(w.cfg.Address.(unixSocket)))
		done <- struct{}{}
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		<-done
		<-done
		clusters.Close()
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) write(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).Write(context.Background(), "local", fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) site(name string) (s corral.Site) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		s, err = tx.CreateSite(corral.Site{Name: name, Owner: "local", Contact: "local:", Batch: "fork", Root: filepath.Join(w.dir, name)})
		return err
	})
	w.t.Cleanup(func() { w.remove(s.ID) })
	return s
}

// remove cancels everything at the site, so that no test leaves a process.
func (w *world) remove(id corral.SiteID) {
	if w.fault == nil {
		w.removeOver(w.cfg.Reach, id)
	} else {
		w.removeOver(w.faultless(), id)
	}
}

// faultless reaches sites on this machine without the world's fault.
func (w *world) faultless() *siteaccess.Reach { return siteaccess.New(backends(""), w.cfg.Key.Owner()) }

func (w *world) removeOver(way *siteaccess.Reach, id corral.SiteID) {
	access, err := way.Open(context.Background(), w.siteNow(id))
	if err != nil {
		w.t.Error(err)
		return
	}
	defer access.Head.Close()
	for _, j := range w.jobs(store.JobFilter{Site: id}) {
		if err := access.Batch(j.Kind).Cancel(context.Background(), j.Tag, time.Second); err != nil {
			w.t.Errorf("cancelling %s: %v", j.Tag, err)
		}
	}
}

func (w *world) glidein(site corral.SiteID, policy resubmit.Policy) (g corral.Glidein) {
	w.t.Helper()
	w.write(func(tx *store.Tx) (err error) {
		g, err = tx.CreateGlidein(corral.Glidein{Owner: "local", Site: site, Cluster: 1, Hosts: 1, CPUs: 1, MemoryMiB: 64,
			Walltime: corral.Seconds(5 * time.Minute), Resubmit: policy})
		return err
	})
	return g
}

func (w *world) siteNow(id corral.SiteID) (s corral.Site) {
	w.view(func(tx *store.Tx) (err error) { s, err = tx.Site(id); return err })
	return s
}

func (w *world) glideinNow(id corral.GlideinID) (g corral.Glidein) {
	w.view(func(tx *store.Tx) (err error) { g, err = tx.Glidein(id); return err })
	return g
}

func (w *world) jobs(f store.JobFilter) (jobs []corral.Job) {
	w.view(func(tx *store.Tx) (err error) { jobs, err = tx.Jobs(f); return err })
	return jobs
}

func (w *world) view(fn func(*store.Tx) error) {
	w.t.Helper()
	if err := storetest.All(w.db).View(context.Background(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// patience is for operations that take some seconds on an idle machine.
const patience = 3 * time.Minute

// until waits for a state of the store.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		changed := w.db.Changed(store.Subject{})
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.t.Fatalf("%s: not within %s; sites %+v, jobs %+v", what, patience, w.siteNow(1), w.jobs(store.JobFilter{}))
		}
	}
}

// untilWorkers waits for a state of the workers in cluster 1.
func (w *world) untilWorkers(what string, ok func([]corral.Worker) bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(w.clusters.Workers(1)); <-tick.C {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within %s; workers %+v", what, patience, w.clusters.Workers(1))
		}
	}
}

func (w *world) siteIs(id corral.SiteID, state corral.SiteState) {
	w.t.Helper()
	w.until(string(state), func() bool { return w.siteNow(id).State == state })
}

func (w *world) attemptIs(id corral.GlideinID, state corral.JobState) {
	w.t.Helper()
	w.until("attempt "+string(state), func() bool {
		a := w.glideinNow(id).Attempts
		return len(a) > 0 && a[len(a)-1].State == state
	})
}

// A site is set up by a real setup job, and its removal leaves nothing behind.
func TestSiteComesAndGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	got := w.siteNow(s.ID)
	if got.Platform.OS != "linux" || got.Package == "" || got.PackageDigest == "" {
		t.Errorf("site knows %+v, package %q", got.Platform, got.Package)
	}
	g := w.glidein(s.ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	w.write(func(tx *store.Tx) error { _, err := tx.MoveSite(s.ID, corral.SiteRemove, "test"); return err })
	w.siteIs(s.ID, corral.SiteDeleted)
	if _, err := os.Lstat(got.Root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("root: %v, want it gone", err)
	}
	if g := w.glideinNow(g.ID); g.State != corral.GlideinDeleted || g.Attempts[0].Outcome != corral.OutcomeRemoved {
		t.Errorf("glidein is %s, its attempt %s", g.State, g.Attempts[0].Outcome)
	}
	var names []string
	for _, e := range corral.Timeline(w.jobs(store.JobFilter{Site: s.ID})...) {
		names = append(names, e.Name)
	}
	want := "SetupSubmitted SetupStarted SetupFinished GlideinSubmitted GlideinStarted GlideinFinished CleanupSubmitted CleanupStarted CleanupFinished"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("timeline:\n%s\nwant\n%s", got, want)
	}
}

// An engine that ends leaves its pilots running; the next one adopts them.
func TestNextEngineAdopts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.start()
	s := w.site("here")
	g := w.glidein(s.ID, resubmit.Policy{Mode: resubmit.Forever})
	w.attemptIs(g.ID, corral.JobRunning)
	before := w.glideinNow(g.ID).Attempts
	stop()
	w.start()
	w.until("the worker is back", func() bool { return w.glideinNow(g.ID).Attempts[0].Workers == 1 })
	after := w.glideinNow(g.ID).Attempts
	if len(after) != 1 || after[0].SiteJobID != before[0].SiteJobID {
		t.Errorf("attempts %+v, want the one that was there: %+v", after, before)
	}
}

// faulty is a batch system whose submissions fail in a chosen way.
type faulty struct {
	gridsite.Batch
	submit func(ctx context.Context, real gridsite.Batch, spec gridsite.JobSpec) (string, error)
}

func (f faulty) Submit(ctx context.Context, spec gridsite.JobSpec) (string, error) {
	return f.submit(ctx, f.Batch, spec)
}

// onPilots makes the first n submissions of pilots fail.
func onPilots(n int32, wrong func(context.Context, gridsite.Batch, gridsite.JobSpec) (string, error)) func(gridsite.Batch) gridsite.Batch {
	var count atomic.Int32
	return func(b gridsite.Batch) gridsite.Batch {
		return faulty{b, func(ctx context.Context, real gridsite.Batch, spec gridsite.JobSpec) (string, error) {
			if !strings.HasPrefix(spec.Tag, "corral-pilot-") || count.Add(1) > n {
				return real.Submit(ctx, spec)
			}
			return wrong(ctx, real, spec)
		}}
	}
}

// The site accepted the job but the answer was lost: the job is found by its tag and never submitted twice.
func TestLostAnswerIsLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault = onPilots(1, func(ctx context.Context, real gridsite.Batch, spec gridsite.JobSpec) (string, error) {
		if _, err := real.Submit(ctx, spec); err != nil {
			return "", err
		}
		return "", errors.New("connection reset")
	})
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{})
	w.until("a worker", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 1 && a[0].Workers == 1 })
	if a := w.glideinNow(g.ID).Attempts; len(a) != 1 || a[0].SiteJobID == "" {
		t.Errorf("attempts %+v, want one, adopted", a)
	}
	dirs, err := filepath.Glob(filepath.Join(w.dir, "here", "jobs", "corral-pilot-*"))
	if err != nil || len(dirs) != 1 {
		t.Errorf("the site has pilot jobs %v (%v), want one", dirs, err)
	}
}

// The request never arrived: once the site would have shown the job, it is submitted again under the same tag.
func TestLostRequestIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault = onPilots(1, answer(errors.New("connection reset")))
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{})
	w.attemptIs(g.ID, corral.JobRunning)
	if a := w.glideinNow(g.ID).Attempts; len(a) != 1 {
		t.Errorf("attempts %+v, want one", a)
	}
}

// A refusal is handled by the policy: a temporary one is retried with back-off.
func TestPassingRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault = onPilots(1, answer(&gridsite.Refused{Text: "too many jobs", Transient: true}))
	w.start()
	g := w.glidein(w.site("here").ID, resubmit.Policy{Retries: 1})
	w.until("the second attempt", func() bool { a := w.glideinNow(g.ID).Attempts; return len(a) == 2 && a[1].State == corral.JobRunning })
}

// After several failed attempts in a row, all glideins leave the site alone for a while, regardless of the number of
// retries left.
func TestCircuitBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault = onPilots(1000, answer(&gridsite.Refused{Text: "out of order", Transient: true}))
	w.start()
	s := w.site("here")
	for range corral.HoldAfter - 1 {
		g := w.glidein(s.ID, resubmit.Policy{})
		w.until("it failed", func() bool { return w.glideinNow(g.ID).State == corral.GlideinFailed })
	}
	last := w.glidein(s.ID, resubmit.Policy{Retries: 9})
	held := func(id corral.GlideinID) bool {
		return strings.HasPrefix(w.glideinNow(id).Reason, "limit circuit breaker")
	}
	w.until("the breaker is open", func() bool { return held(last.ID) })
	other := w.glidein(s.ID, resubmit.Policy{})
	if got := w.glideinNow(other.ID); !held(other.ID) || len(got.Attempts) != 0 {
		t.Errorf("another glidein is %s (%s) with %d attempts", got.State, got.Reason, len(got.Attempts))
	}
	if n := len(w.jobs(store.JobFilter{Site: s.ID, Kind: corral.PilotJob})); n != corral.HoldAfter {
		t.Errorf("the site was asked for %d attempts, want %d", n, corral.HoldAfter)
	}
}

// A permanent refusal fails the glidein with the site's own message, and so does a job that violates the batch
// system's rules.
func TestPermanentRefusal(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"refused": &gridsite.Refused{Text: "too many jobs"},
		"invalid": corral.ErrorAt(corral.Invalid, "argv", "too many jobs"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fault = onPilots(1, answer(err))
			w.start()
			g := w.glidein(w.site("here").ID, resubmit.Policy{Retries: 9})
			w.until("the end", func() bool { return w.glideinNow(g.ID).State.Terminal() })
			got := w.glideinNow(g.ID)
			if got.State != corral.GlideinFailed || !strings.Contains(got.Reason, "too many jobs") || len(got.Attempts) != 1 {
				t.Errorf("glidein is %s (%s) after %d attempts", got.State, got.Reason, len(got.Attempts))
			}
		})
	}
}

// answer is a submission that returns an error and submits nothing.
func answer(err error) func(context.Context, gridsite.Batch, gridsite.JobSpec) (string, error) {
	return func(context.Context, gridsite.Batch, gridsite.JobSpec) (string, error) { return "", err }
}

// A site in trouble does not slow another, and shows the trouble until it is over.
func TestTroubleStaysAtItsSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := backends("")
	var back atomic.Bool
	b.Transports["ssh"] = func(string, string) (gridsite.Conn, error) {
		if !back.Load() {
			return nil, errors.New("no route to host")
		}
		return local.Conn{}, nil
	}
	w.reaches(b)
	w.runEngine()
	light := w.site("light")
	var dark corral.Site
	w.write(func(tx *store.Tx) (err error) {
		dark, err = tx.CreateSite(corral.Site{Name: "dark", Owner: "local", Contact: "ssh://dark", Batch: "fork", Root: filepath.Join(w.dir, "dark")})
		return err
	})
	t.Cleanup(func() { w.remove(dark.ID) })
	w.siteIs(light.ID, corral.SiteReady)
	w.until("the trouble", func() bool { return w.siteNow(dark.ID).Trouble.Why != "" })
	got := w.siteNow(dark.ID)
	if got.State != corral.SiteNew || !strings.Contains(got.Trouble.Why, "no route to host") || got.Trouble.Since.IsZero() || got.Trouble.LoginNeeded {
		t.Errorf("the site that is not reached is %s with the trouble %+v, want NEW with the reason", got.State, got.Trouble)
	}
	back.Store(true)
	w.siteIs(dark.ID, corral.SiteReady)
	w.until("the end of the trouble", func() bool { return w.siteNow(dark.ID).Trouble == corral.SiteTrouble{} })
}

// A cable is a connection to a site that may be cut.
type cable struct {
	gridsite.Conn
	cut *atomic.Bool
}

func (c cable) Run(ctx context.Context, cmd gridsite.Command) (gridsite.Result, error) {
	if c.cut.Load() {
		return gridsite.Result{}, errors.New("no route to host")
	}
	return c.Conn.Run(ctx, cmd)
}

// A glidein that waits for a site in trouble reports that, whichever came first.
func TestGlideinSaysThatItsSiteIsInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var gone atomic.Bool
	b := backends("")
	b.Transports["local"] = func(string, string) (gridsite.Conn, error) { return cable{local.Conn{}, &gone}, nil }
	w.reaches(b)
	w.runEngine()
	s := w.site("here")
	w.siteIs(s.ID, corral.SiteReady)
	says := func(id corral.GlideinID) {
		t.Helper()
		w.until("the glidein to say why it waits", func() bool {
			g := w.glideinNow(id)
			return g.State == corral.GlideinWaiting && strings.HasPrefix(g.Reason, "site here is unreachable: ") && strings.Contains(g.Reason, "no route to host")
		})
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(s.ID, func(s *corral.Site) { s.Limits.MaxRunning = 1 })
		return err
	})
	w.attemptIs(w.glidein(s.ID, resubmit.Policy{}).ID, corral.JobRunning)
	before := w.glidein(s.ID, resubmit.Policy{})
	limited := func() bool { return strings.Contains(w.glideinNow(before.ID).Reason, "max_running") }
	w.until("the limit to keep the second", limited)
	gone.Store(true)
	says(before.ID)
	since := w.glidein(s.ID, resubmit.Policy{})
	says(since.ID)
	gone.Store(false)
	w.until("the limit to keep the second again", limited)
}

// runEngine runs an engine without a worker port until the returned function is called or the test ends.
func (w *world) runEngine() (stop func()) {
	clusters := admission.NewClusters(w.lg, w.db, nil, dispatch.Config{})
	w.t.Cleanup(clusters.Close)
	e := New(w.lg, w.db, clusters, w.cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = e.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return stop
}
