package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/kit/dbcheck"
	"github.com/corral-pilot/corral/internal/service/metrics"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/store/storetest"
)

// A world holds the metrics of a real store.
type world struct {
	*testing.T
	db      *store.DB
	m       *metrics.Metrics
	site    corral.Site
	cluster corral.Cluster

	credentials []credential.Credential // of corrald's logins at all sites
}

// newWorld returns a world with ann's cluster and site.
func newWorld(t *testing.T) *world {
	w := emptyWorld(t)
	w.write(func(tx *store.Tx) (err error) {
		w.cluster, err = tx.CreateCluster(corral.Cluster{Name: "default", Owner: "ann", Kind: corral.Embedded})
		return err
	})
	w.site = w.newSite("hpc")
	return w
}

func emptyWorld(t *testing.T) *world {
	w := &world{T: t, db: storetest.OpenTest(t)}
	w.m = metrics.New(slog.New(slog.DiscardHandler), w.db, "1.2.3", metrics.Sources{
		Workers: func(corral.ClusterID) []corral.Worker {
			return []corral.Worker{{CPUs: 4, CPUsFree: 1, Connected: true}, {CPUs: 8, CPUsFree: 8, Connected: true}, {CPUs: 2}}
		},
		Credentials: func(corral.Site) []credential.Credential { return w.credentials },
	})
	return w
}

func (w *world) write(fn func(*store.Tx) error) {
	w.Helper()
	if err := storetest.All(w.db).Write(w.Context(), "ann", fn); err != nil {
		w.Fatal(err)
	}
}

func (w *world) newSite(name string) (s corral.Site) {
	w.Helper()
	w.write(func(tx *store.Tx) (err error) {
		s, err = ready(tx, corral.Site{Name: name, Owner: "ann", Contact: "local:", Batch: "fork", Root: "/r"})
		return err
	})
	return s
}

// ready creates a READY site.
func ready(tx *store.Tx, s corral.Site) (corral.Site, error) {
	s, err := tx.CreateSite(s)
	for _, move := range []corral.SiteMove{corral.SiteStage, corral.SiteStaged} {
		if err == nil {
			s, err = tx.MoveSite(s.ID, move, "")
		}
	}
	return s, err
}

// attempt creates an attempt of a new glidein and applies events to it.
func (w *world) attempt(events ...corral.JobEvent) (j corral.Job) {
	w.Helper()
	w.write(func(tx *store.Tx) error {
		g, err := tx.CreateGlidein(corral.Glidein{Owner: "ann", Site: w.site.ID, Cluster: w.cluster.ID,
			Shape: corral.Shape{Hosts: 1, CPUs: 1, Walltime: corral.Seconds(time.Hour)}})
		if err == nil {
			j, err = tx.CreateJob(corral.Job{Kind: corral.PilotJob, Site: w.site.ID, Glidein: g.ID, Tag: fmt.Sprint("tag-", g.ID)})
		}
		return err
	})
	return w.move(j, events...)
}

func (w *world) move(j corral.Job, events ...corral.JobEvent) corral.Job {
	w.Helper()
	for _, e := range events {
		w.write(func(tx *store.Tx) (err error) { j, err = tx.MoveJob(j.ID, e); return err })
	}
	return j
}

var (
	submit = corral.JobEvent{Move: corral.JobSubmit, SiteJobID: "1"}
	begin  = corral.JobEvent{Move: corral.JobStart}
	end    = corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired}
)

// scrape returns the scraped values by series.
func (w *world) scrape() map[string]string {
	w.Helper()
	rec := httptest.NewRecorder()
	w.m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(w.Context(), http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		w.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(rec.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			if _, twice := series[name]; twice {
				w.Errorf("%s is there twice", name)
			}
			series[name] = value
		}
	}
	return series
}

func (w *world) want(series map[string]string, want map[string]string) {
	w.Helper()
	for name, value := range want {
		if got, there := series[name]; got != value {
			w.Errorf("%s is %q (there: %v), want %s", name, got, there, value)
		}
	}
}

// The expiry times of credentials are reported, as infinity for those that never expire: an alert on them is false.
func TestExpiryIsReported(t *testing.T) {
	t.Parallel()
	const site, own = `corral_credential_expiry_timestamp_seconds{owner="ann",site="hpc"}`, "corral_tls_certificate_expiry_timestamp_seconds"
	w := newWorld(t)
	w.want(w.scrape(), map[string]string{site: "+Inf", own: "+Inf"})
	w.credentials = []credential.Credential{{NotAfter: time.Unix(9000, 0)}, {}, {NotAfter: time.Unix(5000, 0)}}
	w.m.Shows(func() time.Time { return time.Unix(7000, 0) })
	w.want(w.scrape(), map[string]string{site: "5000", own: "7000"})
}

// Stored facts are reported, including zeros.
func TestStoredIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attempt(submit)
	w.attempt(submit, begin)
	w.write(func(tx *store.Tx) error {
		r, err := tx.CreateRun(corral.Run{Owner: "ann", Cluster: w.cluster.ID, Workflow: "fold", Dir: "/runs/1"})
		if err == nil {
			_, err = tx.SetRun(r.ID, corral.RunTasks{Total: 6, Ready: 1, Running: 2, Done: 3}, nil)
		}
		return err
	})
	w.write(func(tx *store.Tx) error {
		_, err := tx.SetSite(w.site.ID, func(s *corral.Site) {
			s.Trouble = corral.SiteTrouble{Why: "no route", Since: s.CreatedAt, LoginNeeded: true}
		})
		return err
	})
	series := w.scrape()
	w.want(series, map[string]string{
		`corral_build_info{version="1.2.3"}`:                           "1",
		`corral_sites{owner="ann",state="READY"}`:                      "1",
		`corral_sites{owner="ann",state="FAILED"}`:                     "0",
		`corral_glideins{owner="ann",site="hpc",state="ACTIVE"}`:       "2",
		`corral_glideins{owner="ann",site="hpc",state="FAILED"}`:       "0",
		`corral_attempts{owner="ann",site="hpc",state="SUBMITTED"}`:    "1",
		`corral_attempts{owner="ann",site="hpc",state="RUNNING"}`:      "1",
		`corral_attempts{owner="ann",site="hpc",state="QUEUED"}`:       "0",
		`corral_runs{owner="ann",state="RUNNING"}`:                     "1",
		`corral_runs{owner="ann",state="STALLED"}`:                     "0",
		`corral_tasks{owner="ann",state="running"}`:                    "2",
		`corral_tasks{owner="ann",state="skipped"}`:                    "0",
		`corral_tasks_ended_total{outcome="done",owner="ann"}`:         "3",
		`corral_tasks_ended_total{outcome="failed",owner="ann"}`:       "0",
		`corral_workers{cluster="default",owner="ann"}`:                "2",
		`corral_worker_cpus{cluster="default",owner="ann",use="busy"}`: "3",
		`corral_worker_cpus{cluster="default",owner="ann",use="free"}`: "9",
		`corral_site_login_needed{owner="ann",site="hpc"}`:             "1",
		`corral_site_held{owner="ann",site="hpc"}`:                     "0",

		`corral_attempts_ended_total{outcome="failed",owner="ann",site="hpc"}`:  "0",
		`corral_phase_seconds_count{owner="ann",phase="allocation",site="hpc"}`: "0",
		`corral_reconcile_lag_seconds{owner="ann",site="hpc"}`:                  "0",
		`corral_reconcile_failures_total{owner="ann",site="hpc"}`:               "0",
	})
	for _, name := range []string{"corral_site_trouble_seconds", "corral_oldest_queued_seconds"} {
		if v, there := series[name+`{owner="ann",site="hpc"}`]; !there || v == "0" {
			t.Errorf("%s is %q, want some seconds", name, v)
		}
	}
}

// Phases and outcomes are observed once each, from the beginning on.
func TestHistoryIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.attempt(submit, begin, end) // before
	w.scrape()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.m.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	ended := `corral_attempts_ended_total{outcome="expired",owner="ann",site="hpc"}`
	// Until the history is known to be followed, an attempt may predate that.
	until(t, "it follows", func() bool { w.attempt(submit, begin, end); return w.scrape()[ended] != "0" })
	was := w.scrape()
	j := w.attempt(submit, begin)
	for n := range 2 {
		w.write(func(tx *store.Tx) error { _, err := tx.NoteWorkers(j.ID, n+1); return err })
	}
	w.move(j, end)
	for _, name := range []string{
		ended, `corral_phase_seconds_count{owner="ann",phase="allocation",site="hpc"}`, `corral_phase_seconds_count{owner="ann",phase="runtime",site="hpc"}`,
		`corral_phase_seconds_count{owner="ann",phase="registration",site="hpc"}`,
	} {
		var before, now int
		fmt.Sscan(was[name], &before)
		until(t, name, func() bool { fmt.Sscan(w.scrape()[name], &now); return now > before })
		if strings.Contains(name, "registration") && now != before+1 {
			t.Errorf("%s is %d, was %d: only the first worker counts", name, now, before)
		}
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// The loops of sites report their steps, and a site's series are removed with it.
func TestLoops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.newSite("grid")
	w.m.Stepping(w.site.ID) // before the site is known: nothing is reported
	w.want(w.scrape(), map[string]string{`corral_reconcile_lag_seconds{owner="ann",site="hpc"}`: "0"})
	w.m.Stepped(w.site.ID, time.Second, nil)
	w.m.Stepped(w.site.ID, time.Second, errors.New("no route"))
	w.m.Stepping(other.ID)
	series := w.scrape()
	w.want(series, map[string]string{
		`corral_reconcile_step_seconds_count{owner="ann",site="hpc"}`: "2",
		`corral_reconcile_failures_total{owner="ann",site="hpc"}`:     "1",
		`corral_reconcile_failures_total{owner="ann",site="grid"}`:    "0",
	})
	if series[`corral_reconcile_lag_seconds{owner="ann",site="grid"}`] == "0" {
		t.Error("a step is under way, and there is no lag")
	}
	w.write(func(tx *store.Tx) error {
		_, err := tx.MoveSite(other.ID, corral.SiteForget, "gone")
		return err
	})
	w.m.Stepped(other.ID, time.Second, nil)
	for name := range w.scrape() {
		if strings.Contains(name, `"grid"`) {
			t.Errorf("%s is there, and the site is not", name)
		}
	}
}

// Requests are counted by route and status.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.m.Answered(http.MethodGet, "/v1/sites/:site", 404, time.Millisecond)
	w.m.Answered(http.MethodGet, "/v1/sites/:site", 404, time.Second)
	w.m.Answered(http.MethodGet, "", 404, time.Second)
	w.want(w.scrape(), map[string]string{
		`corral_http_requests_total{method="GET",route="/v1/sites/:site",status="404"}`: "2",
		`corral_http_request_seconds_count{method="GET",route="/v1/sites/:site"}`:       "2",
		`corral_http_requests_total{method="GET",route="",status="404"}`:                "1",
	})
}

// The result of the last check of the database is read at each scrape, because a backup writes it in another process.
func TestDamageIsAMetric(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.db.Path()
	for _, tt := range []struct {
		record  dbcheck.Record
		damaged string
	}{
		{dbcheck.Record{At: time.Unix(1000, 0), By: dbcheck.Start}, "0"},
		{dbcheck.Record{At: time.Unix(2000, 0), By: dbcheck.Backup, Damage: "page 7"}, "1"},
		{dbcheck.Record{At: time.Unix(3000, 0), By: dbcheck.Backup}, "0"},
	} {
		if err := dbcheck.Write(path, tt.record); err != nil {
			t.Fatal(err)
		}
		got := w.scrape()
		if got["corral_database_damaged"] != tt.damaged ||
			got["corral_database_check_timestamp_seconds"] != fmt.Sprint(tt.record.At.Unix()) {
			t.Errorf("after %+v the metrics are %v at %v", tt.record, got["corral_database_damaged"],
				got["corral_database_check_timestamp_seconds"])
		}
	}
	if err := os.WriteFile(dbcheck.File(path), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.scrape()["corral_database_damaged"]; got != "1" {
		t.Errorf("a record that cannot be read is the metric %v, want 1", got)
	}
}
