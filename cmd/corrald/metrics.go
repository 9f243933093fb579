package main

// Prometheus scrapes over TCP, while a personal corrald serves its API only on a Unix socket. Therefore
// --metrics-listen opens a separate port that serves only metrics. The API serves the same data at /metrics.

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/service/metrics"
	"github.com/corral-pilot/corral/internal/store"
)

// A metricsPort collects corrald's metrics, and serves them.
type metricsPort struct {
	*metrics.Metrics
	listener net.Listener // nil: not requested
	lg       *slog.Logger
}

// openMetrics listens on the configured address.
func openMetrics(lg *slog.Logger, db *store.DB, s settings, from metrics.Sources) (*metricsPort, error) {
	p := &metricsPort{Metrics: metrics.New(lg, db, version.String(), from), lg: lg}
	if s.metricsListen == "" {
		return p, nil
	}
	l, err := net.Listen("tcp", s.metricsListen)
	if err != nil {
		return nil, corral.ErrorAt(corral.Failed, "--metrics-listen", "%w", err)
	}
	p.listener = l
	lg.Info("metrics are served", "listen", l.Addr().String())
	return p, nil
}

// Limits for a connection of Prometheus, which requests a page every few seconds.
const (
	metricsTimeout   = 30 * time.Second // to send the request, and to read the answer
	metricsMaxHeader = 16 << 10         // bytes
)

// serve collects metrics, and serves them, until ctx ends.
func (p *metricsPort) serve(ctx context.Context) error {
	followed := make(chan error, 1)
	go func() { followed <- p.Run(ctx) }()
	err := p.answer(ctx)
	return errors.Join(err, <-followed)
}

// answer serves requests until ctx ends.
func (p *metricsPort) answer(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.Handler())
	return serveFiles(ctx, p.listener, &http.Server{
		Handler:        mux,
		ReadTimeout:    metricsTimeout,
		WriteTimeout:   metricsTimeout,
		MaxHeaderBytes: metricsMaxHeader,
		ErrorLog:       slog.NewLogLogger(p.lg.Handler(), slog.LevelDebug),
	})
}
