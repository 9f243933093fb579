package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/store"
)

// Metrics holds the metrics of one corrald. Its methods may be called from any goroutine.
type Metrics struct {
	lg       *slog.Logger
	db       *store.DB
	registry *prometheus.Registry
	faults   *faults
	stored   *stored
	history  history
	loops    loops
	requests *prometheus.CounterVec
	answers  *prometheus.HistogramVec

	certificate atomic.Pointer[func() time.Time] // returns the expiry time of corrald's own certificate; nil: none
}

// Sources holds functions that are called at each scrape. Both are required.
type Sources struct {
	Workers     func(corral.ClusterID) []corral.Worker         // the registered workers
	Credentials func(site corral.Site) []credential.Credential // the credentials of corrald's logins there
}

// scrapeTimeout limits the reads of one scrape: by default, Prometheus itself gives up after ten seconds.
const scrapeTimeout = 8 * time.Second

// quick lists the histogram buckets, in seconds, for operations that should take milliseconds.
var quick = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}

// New returns the metrics of a corrald of this version.
func New(lg *slog.Logger, db *store.DB, version string, from Sources) *Metrics {
	m := &Metrics{
		lg: lg, db: db, registry: prometheus.NewRegistry(), faults: newFaults(lg),
		history: newHistory(), loops: newLoops(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "corral_http_requests_total",
			Help: "Requests answered by the REST API; the route is empty for paths that it does not have.",
		}, []string{"method", "route", "status"}),
		answers: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "corral_http_request_seconds",
			Help:    "Time to answer a request, including requests that wait for an event.",
			Buckets: quick,
		}, []string{"method", "route"}),
	}
	m.stored = &stored{db: db, from: from, parts: parts, faults: m.faults, sites: []perSite{&m.history, &m.loops}}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "corral_build_info", Help: "1, with the version of corrald.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		m.stored, m.faults.count, database{lg, db.Path()}, m.requests, m.answers,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "corral_tls_certificate_expiry_timestamp_seconds",
			Help: "When the certificate of corrald's TLS listener expires; +Inf: it has none.",
		}, m.certificateEnds),
	)
	return m
}

// Shows adds the expiry time of corrald's own certificate to the metrics.
func (m *Metrics) Shows(until func() time.Time) { m.certificate.Store(&until) }

func (m *Metrics) certificateEnds() float64 {
	if until := m.certificate.Load(); until != nil {
		return expiry((*until)())
	}
	return expiry(time.Time{})
}

// Handler answers scrapes. Metrics that cannot be read are left out, logged once, and counted in
// corral_metrics_errors_total.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: m.faults, ErrorHandling: promhttp.ContinueOnError, DisableCompression: true, MaxRequestsInFlight: 4,
	})
}

// methods are the methods of the routes.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// Answered counts a request.
func (m *Metrics) Answered(method, route string, status int, took time.Duration) {
	// A client may send any method: unknown ones share a series, so that clients cannot create an unlimited number.
	if !slices.Contains(methods, method) {
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	if route != "" {
		m.answers.WithLabelValues(method, route).Observe(took.Seconds())
	}
}

// Run follows the history until ctx ends.
func (m *Metrics) Run(ctx context.Context) error { return m.history.follow(ctx, m.lg, m.db) }

// A perSite has series for each site; stored creates and removes them. Prometheus's registry collects concurrently,
// so stored also collects them: otherwise a scrape could come before they are created.
type perSite interface {
	prometheus.Collector

	// begin creates a site's series with value 0.
	begin(site corral.Site)

	// end removes a site's series.
	end(site corral.Site)
}

// labelsOf returns the labels of all of a site's series.
func labelsOf(site corral.Site) prometheus.Labels {
	return prometheus.Labels{"owner": site.Owner, "site": site.Name}
}
