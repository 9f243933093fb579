package main

// Sites fetch packages from corrald's own mirror in one of three ways. This file implements HTTP, which is off unless
// --mirror-listen enables it. It requires no password, because archives are public and every site checks signatures.

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/staging"
)

// A mirrorPort serves corrald's own mirror, read-only, to setup jobs and to other corralds. Its files are signed and
// not secret.
type mirrorPort struct {
	listener net.Listener // nil: not requested
	mirror   staging.Mirror
	lg       *slog.Logger
	patience time.Duration // time limit for a peer's request
}

// openMirror listens on the configured address.
func openMirror(lg *slog.Logger, s settings, m staging.Mirror) (*mirrorPort, error) {
	p := &mirrorPort{mirror: m, lg: lg, patience: mirrorReadTimeout}
	if s.mirror.listen == "" {
		return p, nil
	}
	l, err := net.Listen("tcp", s.mirror.listen)
	if err != nil {
		return nil, corral.ErrorAt(corral.Failed, "--mirror-listen", "%w", err)
	}
	p.listener = l
	lg.Info("mirror is served", "listen", l.Addr().String())
	return p, nil
}

// url returns the URL of the mirror for sites, or "" if the mirror is not served. If no address is to be advertised,
// the URL contains the address on which the mirror listens.
func (p *mirrorPort) url(advertise string) string {
	if p.listener == nil {
		return ""
	}
	return "http://" + dialable(advertised(advertise, p.listener.Addr()), gridsite.LocalIP) + "/"
}

// Limits for a connection: an archive of a gigabyte can be transferred at 300 kB/s.
const (
	mirrorReadTimeout  = 10 * time.Second // for a request with its body, which should be empty
	mirrorWriteTimeout = time.Hour
	mirrorIdleTimeout  = 2 * time.Minute
	mirrorMaxHeader    = 16 << 10 // bytes
)

// serve answers requests until ctx ends. Transfers in progress are cut off: setup jobs resume them when corrald is
// running again, or at another mirror.
func (p *mirrorPort) serve(ctx context.Context) error {
	return serveFiles(ctx, p.listener, &http.Server{
		Handler:        p.mirror,
		ReadTimeout:    p.patience,
		WriteTimeout:   mirrorWriteTimeout,
		IdleTimeout:    mirrorIdleTimeout,
		MaxHeaderBytes: mirrorMaxHeader,
		ErrorLog:       slog.NewLogLogger(p.lg.Handler(), slog.LevelDebug),
	})
}

// serveFiles serves requests on l, or nothing if l is nil, until ctx ends. Answers in progress are then cut off.
func serveFiles(ctx context.Context, l net.Listener, server *http.Server) error {
	if l == nil {
		<-ctx.Done()
		return nil
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
