package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/service/metrics"
	"github.com/corral-pilot/corral/internal/service/outage"
	"github.com/corral-pilot/corral/internal/service/server"
	"github.com/corral-pilot/corral/internal/sites/admission"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
	"github.com/corral-pilot/corral/internal/work/ensembles"
	"github.com/corral-pilot/corral/internal/work/run"
)

// A crowd is a set of registered workers, as in HTCondor's pools: the far end of the real clusters.
type crowd struct {
	clusters *admission.Clusters

	mu      sync.Mutex // guards the fields below
	workers []corral.Worker
	looks   int // calls of Workers
}

func (c *crowd) Workers(cluster corral.ClusterID) []corral.Worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	var in []corral.Worker
	for _, w := range c.workers {
		if w.Cluster == cluster {
			in = append(in, w)
		}
	}
	return in
}

func (c *crowd) Mint(context.Context, corral.ClusterID, corral.JobID, time.Duration) (string, time.Time, error) {
	return "", time.Time{}, errors.New("no pool is there")
}

func (c *crowd) Waiting(context.Context, corral.ClusterID) ([]matching.Class, error) { return nil, nil }

func (c *crowd) Queue(corral.Cluster) (run.Dispatcher, error) {
	return nil, errors.New("no pool is there")
}

func (c *crowd) register(w corral.Worker) {
	c.mu.Lock()
	c.workers = append(c.workers, w)
	c.mu.Unlock()
	c.clusters.Notify()
}

// A drawer is where the server stores tokens; real pools take seconds each and are tested behind a server in
// internal/e2e.
type drawer struct {
	mu     sync.Mutex // guards the fields below
	tokens map[corral.ClusterID]string
	full   error // error of PutToken
}

func (d *drawer) PutToken(id corral.ClusterID, secret string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full == nil {
		d.tokens[id] = secret
	}
	return d.full
}

func (d *drawer) Env(_ context.Context, id corral.ClusterID) ([]string, error) {
	dir := fmt.Sprintf("/srv/clusters/%d", id)
	return []string{"CONDOR_CONFIG=" + dir + "/condor_config", "PATH=" + dir + "/release/bin:" + dir + "/release/sbin", "CORRAL_CLUSTER=mine"}, nil
}

// A fixture is a server on a real store, behind a Unix socket, with the real client.
type fixture struct {
	*api.Client
	db     *store.DB
	crowd  *crowd
	bench  *bench
	server *server.Server
	shelf  *shelf
	drawer *drawer
	*far
	config server.Config
	log    *bytes.Buffer
}

var machine = corral.SiteQueue{CPUs: 32, MemoryMiB: 65_536}

func start(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{
		db:     storetest.OpenTest(t),
		crowd:  &crowd{},
		bench:  newBench(),
		shelf:  newShelf(t),
		far:    &far{files: map[string]string{}, jobs: map[string]gridsite.JobStatus{}, lines: map[string]int{}},
		drawer: &drawer{tokens: map[corral.ClusterID]string{}},
		log:    &bytes.Buffer{},
	}
	lg := slog.New(slog.NewTextHandler(f.log, nil))
	f.crowd.clusters = admission.NewClusters(lg, f.db, nil, dispatch.Config{})
	f.crowd.clusters.UsePools(f.crowd)
	t.Cleanup(f.crowd.clusters.Close)
	way := siteaccess.New(f.far.backends(), "0123 me@here")
	f.config = server.Config{
		Version: "test",
		User:    "nobody",
		Machine: machine,
		Folders: server.Folders{Sites: "/srv/sites", Ensembles: ensembles.Shelf(t.TempDir())},
		Runs:    newRuns(t, f.db, f.bench),
		Workers: server.Workers{Clusters: f.crowd.clusters, Outages: outage.New(lg, f.db, f.crowd.clusters)},
		Catalog: f.shelf.catalog(f.db),
		Reach:   way,
		Prober:  probes{f.far},
		Pools:   f.drawer,
		Metrics: metrics.New(lg, f.db, "test", metrics.Sources{Workers: f.crowd.clusters.Workers, Credentials: way.Credentials.Of}),
		Keys:    keybox(t.TempDir()),
		Bounds:  server.Bounds{Visits: server.VisitBounds{Allowed: contacts(t, "*:*")}},
	}
	f.server = server.New(lg, f.db, f.config)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewUnstartedServer(checked(t, f.server))
	hs.Listener.Close()
	hs.Listener = l
	hs.Start()
	t.Cleanup(hs.Close)
	t.Cleanup(f.server.Stop)
	f.Client, err = api.New("unix:" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Client.Close)
	return f
}

// checked compares every answer of h with the OpenAPI document. It disconnects after the first piece of a continuous
// one.
func checked(t testing.TB, h http.Handler) http.Handler {
	router := openAPIRouter(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		ctx, leave := context.WithCancel(r.Context())
		defer leave()
		h.ServeHTTP(leaver{rec, leave}, r.WithContext(ctx))
		if err := checkAnswer(router, r, rec); err != nil {
			t.Errorf("%s %s answered %d %s: %v", r.Method, r.URL, rec.Code, rec.Body, err)
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())
	})
}

// A leaver disconnects when a piece of an answer has arrived; single-piece answers are not flushed.
type leaver struct {
	*httptest.ResponseRecorder
	leave func()
}

func (l leaver) Flush() {
	l.ResponseRecorder.Flush()
	l.leave()
}

func checkAnswer(router routers.Router, r *http.Request, rec *httptest.ResponseRecorder) error {
	route, params, err := router.FindRoute(r)
	if err != nil {
		if rec.Code == http.StatusNotFound || rec.Code == http.StatusMethodNotAllowed {
			return nil // routes missing from the document are also missing from the server
		}
		return err
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 rec.Code,
		Header:                 rec.Header(),
	}
	return openapi3filter.ValidateResponse(context.WithoutCancel(r.Context()), in.SetBodyBytes(rec.Body.Bytes()))
}

// send sends a raw request that the client would not send.
func (f *fixture) send(t *testing.T, method, target, body string, header ...string) (int, api.Problem, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	f.server.ServeHTTP(rec, r)
	var p api.Problem
	if rec.Code >= 400 {
		if got := rec.Header().Get("Content-Type"); got != api.ProblemMediaType {
			t.Errorf("%s %s: content type %q of an error", method, target, got)
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Status != rec.Code {
			t.Errorf("%s %s: status %d with body %s", method, target, rec.Code, rec.Body)
		}
	}
	return rec.Code, p, rec.Body.String()
}

// write changes the store like the engine.
func (f *fixture) write(t testing.TB, fn func(*store.Tx) error) {
	t.Helper()
	if err := storetest.All(f.db).Write(t.Context(), "corrald", fn); err != nil {
		t.Fatal(err)
	}
}

// must returns a function that returns v, or ends the test.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// readySite creates a READY site local and cluster default.
func (f *fixture) readySite(t testing.TB) corral.Site {
	t.Helper()
	site := must(f.CreateSite(t.Context(), api.NewSite{Name: "local", Contact: "local:", Batch: "fork"}, ""))(t)
	must(f.CreateCluster(t.Context(), api.NewCluster{Name: "default", Kind: corral.Embedded}, ""))(t)
	f.write(t, func(tx *store.Tx) error {
		if _, err := tx.MoveSite(site.ID, corral.SiteStage, ""); err != nil {
			return err
		}
		_, err := tx.MoveSite(site.ID, corral.SiteStaged, "")
		return err
	})
	return site
}

// attempt creates a running attempt of g.
func (f *fixture) attempt(t *testing.T, g corral.Glidein, tag string) corral.Job {
	t.Helper()
	var job corral.Job
	f.write(t, func(tx *store.Tx) (err error) {
		job, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: g.Site, Glidein: g.ID, Tag: tag,
			TokenDigest: strings.Repeat("d", 64), TokenEndsAt: time.Now().UTC().Add(time.Hour)})
		if err != nil {
			return err
		}
		job, err = tx.MoveJob(job.ID, corral.JobEvent{Move: corral.JobSubmit, SiteJobID: "1"})
		if err != nil {
			return err
		}
		job, err = tx.MoveJob(job.ID, corral.JobEvent{Move: corral.JobStart})
		return err
	})
	return job
}

// small returns a valid request.
func small() api.NewGlidein {
	return api.NewGlidein{Site: "local",
		Shape: corral.Shape{Hosts: 2, CPUs: 1, Walltime: corral.Seconds(10 * time.Minute)}}
}

func (f *fixture) glidein(t *testing.T) corral.Glidein {
	t.Helper()
	return must(f.CreateGlidein(t.Context(), small(), ""))(t)
}

// wantKind compares the kind and the place of an error.
func wantKind(t *testing.T, what string, err error, kind corral.Kind, place string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want kind %q, place %q", what, kind, place)
		return
	}
	if got := api.ProblemOf(err); got.Kind != kind || got.Place != place {
		t.Errorf("%s: %v (kind %q, place %q), want kind %q, place %q", what, err, got.Kind, got.Place, kind, place)
	}
}
