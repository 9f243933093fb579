package main

// Prometheus scrapes by TCP, and a personal corrald answers its API on a Unix socket alone. So what it tells of itself,
// and nothing else, may have a port of its own: --metrics-listen opens it. The API has the same answer at /metrics.

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

// A metricsPort keeps corrald's metrics, and serves them.
type metricsPort struct {
	*metrics.Metrics
	listener net.Listener // nil: it is not wanted
	lg       *slog.Logger
}

// openMetrics listens where the settings say.
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

// Bounds of a connection of Prometheus, which asks for a page every few seconds.
const (
	metricsTimeout   = 30 * time.Second // to ask, and to take the answer
	metricsMaxHeader = 16 << 10         // bytes
)

// serve follows what happens, and answers, until ctx ends.
func (p *metricsPort) serve(ctx context.Context) error {
	followed := make(chan error, 1)
	go func() { followed <- p.Run(ctx) }()
	err := p.answer(ctx)
	return errors.Join(err, <-followed)
}

// answer answers until ctx ends.
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
