package main

// Sites fetch packages from corrald's own mirror in one of three ways. This is the one by HTTP, which is off unless
// --mirror-listen turns it on: it needs no password, because archives are public and every site checks signatures.

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

// A mirrorPort serves corrald's own mirror, read-only, to setup jobs and to other corralds. What it
// serves is signed and no secret.
type mirrorPort struct {
	listener net.Listener // nil: it is not wanted
	mirror   staging.Mirror
	lg       *slog.Logger
	patience time.Duration // with what a peer has to say
}

// openMirror listens where the settings say.
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

// url is where sites find the mirror, "" if it is not served. An address that was not given to
// advertise is the one that it listens on.
func (p *mirrorPort) url(advertise string) string {
	if p.listener == nil {
		return ""
	}
	return "http://" + dialable(advertised(advertise, p.listener.Addr()), gridsite.LocalIP) + "/"
}

// Bounds of a connection: an archive of a gigabyte passes at 300 kB/s.
const (
	mirrorReadTimeout  = 10 * time.Second // for a request with its body, of which it wants none
	mirrorWriteTimeout = time.Hour
	mirrorIdleTimeout  = 2 * time.Minute
	mirrorMaxHeader    = 16 << 10 // bytes
)

// serve answers until ctx ends. Transfers that are on their way are cut off: they are resumed when
// corrald is back, or at another mirror.
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

// serveFiles answers what comes in on l, nil for nothing, until ctx ends. Answers that are on their way then are cut
// off.
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
