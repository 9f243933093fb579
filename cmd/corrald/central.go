package main

// A central corrald serves users other than its own: it also listens on TLS, where users authenticate with a token. Its
// socket still serves the user that it runs as, who is an administrator and creates the first token. On SIGHUP it
// rereads the certificate and reopens the audit log.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/service/central"
	"github.com/corral-pilot/corral/internal/store"
)

// centralSettings are the settings of a central corrald.
type centralSettings struct {
	listen    string // HOST:PORT; "": corrald serves only its own user
	cert, key string // files
	audit     string // file; "": the log is used
	limits    limits
}

// centralFlags returns the flags for centralSettings.
func centralFlags() []cli.Flag {
	text := func(name, usage string) cli.Flag {
		return &cli.StringFlag{Name: name, EnvVars: variables(name), Usage: usage}
	}
	return append([]cli.Flag{
		text("tls-listen", "serve other users, with TLS and tokens, on `HOST:PORT` (default: off)"),
		text("tls-cert", "`FILE` with the certificate of --tls-listen and its chain, PEM; reread when it changes"),
		text("tls-key", "`FILE` with the private key of that certificate, PEM"),
		text("audit-log",
			"append a line of JSON to `FILE` for each request that may make changes (default: the log)"),
		&cli.BoolFlag{Name: "check-config",
			Usage: "print the settings, run the checks that change nothing, and exit"},
	}, limitFlags()...)
}

// newCentralSettings reads the flags, and refuses invalid values.
func newCentralSettings(c *cli.Context) (s centralSettings, err error) {
	s = centralSettings{listen: c.String("tls-listen"), cert: c.String("tls-cert"), key: c.String("tls-key"),
		audit: c.String("audit-log")}
	invalid := func(flag, format string, args ...any) (centralSettings, error) {
		return s, corral.ErrorAt(corral.Invalid, flag, format, args...)
	}
	if s.listen == "" && s.cert+s.key != "" {
		return invalid("--tls-listen", "is missing: --tls-cert and --tls-key require it")
	}
	if s.listen != "" {
		if err := checkListen("--tls-listen", s.listen); err != nil {
			return s, err
		}
		if s.cert == "" || s.key == "" {
			return invalid("--tls-listen", "needs --tls-cert and --tls-key")
		}
	}
	for _, f := range []struct{ flag, path string }{
		{"--tls-cert", s.cert}, {"--tls-key", s.key}, {"--audit-log", s.audit},
	} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			return invalid(f.flag, "%q is not an absolute path", f.path)
		}
	}
	s.limits, err = newLimits(c)
	return s, err
}

// printConfig completes --check-config: it prints the settings with which corrald would start, and the notes.
func printConfig(w io.Writer, c *cli.Context, s settings, notes []string) error {
	for _, f := range c.App.Flags {
		name := f.Names()[0]
		if name != "help" && name != "version" && name != "check-config" {
			fmt.Fprintf(w, "%s=%v\n", name, c.Value(name))
		}
	}
	if s.central.listen != "" {
		certificates, err := central.LoadCertificates(slog.New(slog.DiscardHandler), s.central.cert, s.central.key)
		if err != nil {
			return err
		}
		leaf := certificates.Leaf()
		fmt.Fprintf(w, "certificate of %v, good until %s\n", leaf.DNSNames, leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	for _, note := range notes {
		fmt.Fprintln(w, "note: "+note)
	}
	return nil
}

// An auditFile is the destination of audit lines. It is reopened on SIGHUP, as log rotation requires.
type auditFile struct {
	path string

	mu   sync.Mutex // guards the field below
	file *os.File
}

func (a *auditFile) reopen() error {
	f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return corral.ErrorAt(corral.Invalid, "--audit-log", "%w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		_ = a.file.Close() // each line has already been written
	}
	a.file = f
	return nil
}

// Write appends a whole line: package slog writes one line at a time.
func (a *auditFile) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.file.Write(line)
}

// openAudit returns a logger for audit lines, and a function that reopens its file.
func openAudit(lg *slog.Logger, path string) (*slog.Logger, func() error, error) {
	if path == "" {
		return lg, func() error { return nil }, nil
	}
	a := &auditFile{path: path}
	return slog.New(slog.NewJSONHandler(a, nil)), a.reopen, a.reopen()
}

// A front is the TLS endpoint for other users; nil: only the user of this process is served.
type front struct {
	listener     net.Listener
	door         *central.Door
	certificates *central.Certificates
}

// openFront listens for other users, if the settings request it.
func (d *daemon) openFront(ctx context.Context, lg *slog.Logger, db *store.DB, s centralSettings) (*front, error) {
	if s.listen == "" {
		return nil, nil
	}
	certificates, err := central.LoadCertificates(lg, s.cert, s.key)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, corral.ErrorAt(corral.Unavailable, "--tls-listen", "%w", err)
	}
	lg.Info("corrald serves users with a token", "address", l.Addr().String(), "certificate", s.cert,
		"expires", certificates.Leaf().NotAfter)
	return &front{
		listener: tls.NewListener(l, certificates.Config()), certificates: certificates,
		door: central.NewDoor(d.api, db, d.api.Audit, s.limits.requests),
	}, nil
}

// answer serves the socket, and also other users if f is not nil, until ctx ends or one of the two servers ends.
func (d *daemon) answer(ctx context.Context, socket net.Listener, f *front) error {
	if f == nil {
		return d.api.Serve(ctx, socket)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	others := make(chan error, 1)
	go func() {
		defer cancel()
		others <- d.api.ServeBy(ctx, f.listener, f.door)
	}()
	err := d.api.Serve(ctx, socket)
	cancel()
	return errors.Join(err, <-others)
}

// heedHangups rereads the certificate and reopens the audit log at each SIGHUP, until stop is called.
func heedHangups(ctx context.Context, lg *slog.Logger, f *front, reopen func() error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var heeding sync.WaitGroup
	heeding.Go(func() { obeyHangups(ctx, lg, f, reopen) })
	return func() {
		cancel()
		heeding.Wait()
	}
}

func obeyHangups(ctx context.Context, lg *slog.Logger, f *front, reopen func() error) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		err := reopen()
		if f != nil {
			err = errors.Join(err, f.certificates.Reload())
		}
		if err != nil {
			lg.Error("certificate not reread or audit log not reopened; the previous ones stay in use", "error", err)
			continue
		}
		lg.Info("the certificate was reread and the audit log reopened")
	}
}
