package metrics

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/corral-pilot/corral/internal/kit/dbcheck"
)

var (
	damagedDesc = gauge("corral_database_damaged",
		"1 if the last check of the database found damage, be it that of corrald's start or that of a backup.")
	checkedDesc = gauge("corral_database_check_timestamp_seconds",
		"When the database was last checked, since 1970; 0: never.")
)

// database reads the result of the last check at each scrape, because a backup checks in a separate process.
type database struct {
	lg   *slog.Logger
	path string
}

// Describe implements prometheus.Collector.
func (d database) Describe(to chan<- *prometheus.Desc) {
	to <- damagedDesc
	to <- checkedDesc
}

// Collect implements prometheus.Collector. An unreadable record also counts as damage.
func (d database) Collect(to chan<- prometheus.Metric) {
	r, found, err := dbcheck.Read(d.path)
	var at float64
	if err != nil {
		d.lg.Warn("reading metrics", "error", err)
	} else if found {
		at = float64(r.At.Unix())
	}
	to <- prometheus.MustNewConstMetric(damagedDesc, prometheus.GaugeValue, truth(err != nil || !r.Whole()))
	to <- prometheus.MustNewConstMetric(checkedDesc, prometheus.GaugeValue, at)
}
