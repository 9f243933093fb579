package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/retry"
	"github.com/corral-pilot/corral/internal/store"
)

// page is the number of history entries read at once.
const page = 1000

// registration is the phase from an attempt's start to its first worker. The other phases are those of a timeline.
const registration = "registration"

// phaseNames lists all phases.
var phaseNames = []string{"setup", "allocation", registration, "runtime", "cleanup"}

// A history observes jobs in the store's history entries after corrald's start.
type history struct {
	phases *prometheus.HistogramVec
	ended  *prometheus.CounterVec
}

func newHistory() history {
	return history{
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "corral_phase_seconds",
			Help: "Times of phases by site: setup and cleanup of the site, allocation (submission of an attempt to " +
				"its start: the wait in the queue), registration (start to the first worker), runtime.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800,
				604800},
		}, []string{"owner", "site", "phase"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "corral_attempts_ended_total", Help: "Attempts of glideins that ended, by site and outcome.",
		}, []string{"owner", "site", "outcome"}),
	}
}

// Describe implements prometheus.Collector.
func (h *history) Describe(to chan<- *prometheus.Desc) { h.phases.Describe(to); h.ended.Describe(to) }

// Collect implements prometheus.Collector.
func (h *history) Collect(to chan<- prometheus.Metric) { h.phases.Collect(to); h.ended.Collect(to) }

// begin implements perSite.
func (h *history) begin(site corral.Site) {
	for _, phase := range phaseNames {
		h.phases.WithLabelValues(site.Owner, site.Name, phase)
	}
	for _, outcome := range corral.Outcomes {
		if outcome != corral.OutcomeDone { // only setup and cleanup jobs have this outcome
			h.ended.WithLabelValues(site.Owner, site.Name, string(outcome))
		}
	}
}

// end implements perSite.
func (h *history) end(site corral.Site) {
	of := labelsOf(site)
	h.phases.DeletePartialMatch(of)
	h.ended.DeletePartialMatch(of)
}

// follow observes entries as they are written, until ctx ends. If the database cannot be read, it tries again: no
// entry is left out.
func (h *history) follow(ctx context.Context, lg *slog.Logger, db *store.DB) error {
	last, known := int64(0), false
	for ctx.Err() == nil {
		changed := db.Changed(store.Subject{Object: corral.ObjectJob})
		err := db.Whole().View(ctx, func(tx *store.WholeTx) (err error) {
			if !known {
				_, last, err = tx.HistorySpan()
				return err
			}
			last, err = h.read(tx, last)
			return err
		})
		switch {
		case ctx.Err() != nil:
		case err != nil:
			lg.Warn("reading the history for metrics", "error", err)
			retry.For(ctx, time.Second)
			continue
		case !known:
			known = true
			continue // reads the entries written since the channel was taken
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// read observes the entries after the given one and returns the last one.
func (h *history) read(tx *store.WholeTx, last int64) (int64, error) {
	for {
		entries, err := tx.HistoryAfter(last, page)
		if err != nil {
			return last, err
		}
		for _, e := range entries {
			if e.Object == corral.ObjectJob {
				if err := h.observe(tx, e); err != nil {
					return last, err
				}
			}
			last = e.ID
		}
		if len(entries) < page {
			return last, nil
		}
	}
}

// observe updates the metrics according to an entry about a job.
func (h *history) observe(tx *store.WholeTx, e corral.Entry) error {
	job, err := tx.Job(corral.JobID(e.Of))
	if err != nil {
		return err
	}
	site, err := tx.Site(job.Site)
	if err != nil || site.State == corral.SiteDeleted {
		return err
	}
	moved := e.From != e.To
	switch {
	case moved && e.To == string(corral.JobEnded) && job.Kind == corral.PilotJob:
		h.ended.WithLabelValues(site.Owner, site.Name, string(job.Outcome)).Inc()
	case e.Event == "workers" && !job.StartedAt.IsZero():
		first, err := firstWorkers(tx, job)
		if err == nil && first == e.ID {
			h.phase(site, registration, e.At.Sub(job.StartedAt))
		}
		return err
	}
	if !moved {
		return nil
	}
	// Only the timeline events of this entry count, because a job's row may already contain later ones.
	about := map[string]bool{}
	switch e.To {
	case string(corral.JobRunning):
		about["allocation"] = true
	case string(corral.JobEnded):
		about["setup"], about["runtime"], about["cleanup"] = true, true, true
	}
	for _, p := range corral.Phases(corral.Timeline(job)) {
		if about[p.Name] {
			h.phase(site, p.Name, p.Took())
		}
	}
	return nil
}

func (h *history) phase(site corral.Site, name string, took time.Duration) {
	h.phases.WithLabelValues(site.Owner, site.Name, name).Observe(max(0, took.Seconds()))
}

// firstWorkers returns the id of the history entry about a job's first worker, or 0 if there is none.
func firstWorkers(tx *store.WholeTx, job corral.Job) (id int64, err error) {
	entries, err := tx.History(corral.ObjectJob, int64(job.ID), store.Page{})
	for _, e := range entries {
		if e.Event == "workers" {
			return e.ID, err
		}
	}
	return 0, err
}
