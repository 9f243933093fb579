package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/corral-pilot/corral"
)

var (
	lagDesc = gauge("corral_reconcile_lag_seconds",
		"How long a step of the site's loop has been under way: what is asked meanwhile waits. 0: the loop rests.",
		"owner", "site")
	successDesc = gauge("corral_reconcile_success_timestamp_seconds",
		"When a step of the site's loop last ended without an error, since 1970; at first, when it was first seen.",
		"owner", "site")
)

// loops tracks the sites' loops, as reported by the engine.
type loops struct {
	steps    *prometheus.HistogramVec
	failures *prometheus.CounterVec

	mu sync.Mutex // guards of
	of map[corral.SiteID]*loop
}

// A loop is the loop of a site that has series.
type loop struct {
	owner, site string
	began       time.Time // start of the current step; zero: none
	good        time.Time // end of the last step without an error
}

func newLoops() loops {
	return loops{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corral_reconcile_step_seconds", Help: "Time that a step of the site's loop took.", Buckets: quick,
		}, []string{"owner", "site"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "corral_reconcile_failures_total", Help: "Steps of the site's loop that ended with an error.",
		}, []string{"owner", "site"}),
		of: map[corral.SiteID]*loop{},
	}
}

// Describe implements prometheus.Collector.
func (l *loops) Describe(to chan<- *prometheus.Desc) {
	l.steps.Describe(to)
	l.failures.Describe(to)
	to <- lagDesc
	to <- successDesc
}

// Collect implements prometheus.Collector.
func (l *loops) Collect(to chan<- prometheus.Metric) {
	l.steps.Collect(to)
	l.failures.Collect(to)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, of := range l.of {
		lag := 0.0
		if !of.began.IsZero() {
			lag = now.Sub(of.began).Seconds()
		}
		good := float64(of.good.UnixMilli()) / 1000
		to <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, lag, of.owner, of.site)
		to <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, good, of.owner, of.site)
	}
}

// begin implements perSite.
func (l *loops) begin(site corral.Site) {
	l.steps.WithLabelValues(site.Owner, site.Name)
	l.failures.WithLabelValues(site.Owner, site.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[site.ID] = &loop{owner: site.Owner, site: site.Name, good: time.Now()}
}

// end implements perSite.
func (l *loops) end(site corral.Site) {
	l.steps.DeletePartialMatch(labelsOf(site))
	l.failures.DeletePartialMatch(labelsOf(site))
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, site.ID)
}

// Stepping reports that a step of a site's loop begins. The site has no series before the first scrape that finds it.
func (m *Metrics) Stepping(site corral.SiteID) {
	l := &m.loops
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.of[site]; of != nil {
		of.began = time.Now()
	}
}

// Stepped reports the end of a step, with its duration and its error, or nil.
func (m *Metrics) Stepped(site corral.SiteID, took time.Duration, err error) {
	l := &m.loops
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.of[site]
	if of == nil {
		return
	}
	of.began = time.Time{}
	l.steps.WithLabelValues(of.owner, of.site).Observe(took.Seconds())
	if err != nil {
		l.failures.WithLabelValues(of.owner, of.site).Inc()
		return
	}
	of.good = time.Now()
}
