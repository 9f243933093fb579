package metrics

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// faults counts the failures of scrapes by part and logs each error once. The rest is still served: an alert on the
// counter shows that something is missing.
type faults struct {
	lg    *slog.Logger
	count *prometheus.CounterVec

	mu   sync.Mutex        // guards last
	last map[string]string // the error of each part's last scrape; parts without an error have no entry
}

// newFaults returns the counter of all parts' faults, each starting at 0.
func newFaults(lg *slog.Logger) *faults {
	f := &faults{lg: lg, last: map[string]string{}, count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "corral_metrics_errors_total",
		Help: "Scrapes in which a part of the metrics could not be read, or a series was left out.",
	}, []string{"part"})}
	f.count.WithLabelValues(registered)
	for _, p := range parts {
		f.count.WithLabelValues(p.name)
	}
	return f
}

// registered is the part that the client library collects by itself.
const registered = "registry"

// ended records the result of a part's scrape.
func (f *faults) ended(part string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.last, part)
		return
	}
	f.count.WithLabelValues(part).Inc()
	if text := err.Error(); f.last[part] != text {
		f.last[part] = text
		f.lg.Warn("metrics are incomplete", "part", part, "error", err)
	}
}

// Println implements promhttp.Logger: it records the library's failures to collect or encode metrics.
func (f *faults) Println(v ...any) {
	f.ended(registered, fmt.Errorf("%s", strings.TrimSpace(fmt.Sprintln(v...))))
}

// A sender sends the series of one scrape. Prometheus's registry refuses a scrape with a duplicate series, so a
// second one with the same labels is left out and becomes an error of the part that sent it.
type sender struct {
	to   chan<- prometheus.Metric
	sent map[string]bool
	err  error // the first error of the current part
}

// gauge sends a value that may increase and decrease.
func (s *sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.send(d, prometheus.GaugeValue, v, labels...)
}

// send sends a series, or records the error if it cannot be sent.
func (s *sender) send(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(d, kind, v, labels...)
	key := d.String() + "\x00" + strings.Join(labels, "\x00")
	if err == nil && s.sent[key] {
		err = fmt.Errorf("a series twice: %s of %q", d, labels)
	}
	if err != nil {
		if s.err == nil {
			s.err = err
		}
		return
	}
	s.sent[key] = true
	s.to <- metric
}
