package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	lagDesc = gauge("corral_reconcile_lag_seconds",
		"How long a step of the site's loop has been under way: what is asked meanwhile waits. 0: the loop rests.",
		"site")
	successDesc = gauge("corral_reconcile_success_timestamp_seconds",
		"When a step of the site's loop last ended without an error, since 1970; at first, when it was first seen.",
		"site")
)

// loops are those of sites, as the engine tells of them.
type loops struct {
	steps    *prometheus.HistogramVec
	failures *prometheus.CounterVec

	mu    sync.Mutex // guards what follows
	began map[string]time.Time
	good  map[string]time.Time
}

func newLoops() loops {
	return loops{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corral_reconcile_step_seconds", Help: "Time that a step of the site's loop took.", Buckets: quick,
		}, []string{"site"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "corral_reconcile_failures_total", Help: "Steps of the site's loop that ended with an error.",
		}, []string{"site"}),
		began: map[string]time.Time{}, good: map[string]time.Time{},
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
	for site, good := range l.good {
		lag := 0.0
		if began := l.began[site]; !began.IsZero() {
			lag = now.Sub(began).Seconds()
		}
		to <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, lag, site)
		to <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, float64(good.UnixMilli())/1000, site)
	}
}

func (l *loops) begin(site string) {
	l.steps.WithLabelValues(site)
	l.failures.WithLabelValues(site)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.good[site].IsZero() {
		l.good[site] = time.Now()
	}
}

func (l *loops) end(site string) {
	of := prometheus.Labels{"site": site}
	l.steps.DeletePartialMatch(of)
	l.failures.DeletePartialMatch(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.began, site)
	delete(l.good, site)
}

// Stepping tells that a step of a site's loop begins. The site has no series before the first scrape that finds it.
func (m *Metrics) Stepping(site string) {
	l := &m.loops
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.good[site]; known {
		l.began[site] = time.Now()
	}
}

// Stepped tells that a step has ended, how long it took, and why it failed, nil if it has not.
func (m *Metrics) Stepped(site string, took time.Duration, err error) {
	l := &m.loops
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.good[site]; !known {
		return
	}
	delete(l.began, site)
	l.steps.WithLabelValues(site).Observe(took.Seconds())
	if err != nil {
		l.failures.WithLabelValues(site).Inc()
		return
	}
	l.good[site] = time.Now()
}
