package pool

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
)

const (
	admitTimeout   = 10 * time.Second // for handshake, hello and admission together
	maxConnections = 4096             // at one port, admitted or not
	maxCouriers    = 1024             // of them: workers and pilots must find places while many files are carried
)

// Credentials are what somebody who dials in shows.
type Credentials struct {
	Role        Role
	Tag         string // of the attempt
	TokenDigest string // SHA-256 of the token, hex: the token itself goes no further than the port
	Holder      string // the pilot process that says it has the attempt's lease
}

// An Admission says what somebody who was admitted belongs to.
type Admission struct {
	Attempt    corral.JobID
	Hosts      int // of the attempt, each of which has a worker; 0: one
	Glidein    corral.GlideinID
	Cluster    corral.ClusterID
	Dispatcher *Dispatcher
}

// A Gate knows the attempts. Its errors are corral.Errors: their sentences are sent to who dialled in,
// who gives up on Unauthenticated, Forbidden, Conflict and Invalid, and tries again otherwise.
type Gate interface {
	// Admit checks the token, comparing digests in constant time, and that the Holder of a worker and of its
	// couriers has the attempt's lease.
	Admit(ctx context.Context, c Credentials) (Admission, error)

	// Lease gives the attempt's lease to holder; it is a Conflict if another pilot has it.
	Lease(ctx context.Context, attempt corral.JobID, holder string) error

	// Report records how an attempt is doing.
	Report(ctx context.Context, attempt corral.JobID, phase, reason string) error

	// LoseHost records that an attempt goes on without one of its hosts; it may be said again.
	LoseHost(ctx context.Context, attempt corral.JobID, lost corral.LostHost) error
}

// A Port is where workers and pilots dial in. It speaks the worker protocol and nothing else.
type Port struct {
	lg    *slog.Logger
	gate  Gate
	slots chan struct{} // one for each connection
	bulk  chan struct{} // one for each courier
	calls callBacks
}

// NewPort returns a port that admits whom gate admits.
func NewPort(lg *slog.Logger, gate Gate) *Port {
	return &Port{lg: lg, gate: gate, slots: make(chan struct{}, maxConnections), bulk: make(chan struct{}, maxCouriers), calls: newCallBacks()}
}

// ServeUnix serves on a Unix socket that only this user can connect to, until ctx is done; then the
// socket is removed and all connections are closed. A socket that nobody serves is replaced.
func (p *Port) ServeUnix(ctx context.Context, path string) error {
	ln, err := ListenUnix(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	return p.Serve(ctx, ln)
}

// ListenUnix opens a Unix socket that only this user can connect to. The socket is made under another
// name first, so that it is never there with a wider mode. One that nobody serves is replaced; one that
// somebody serves, or a file that is no socket, is a Conflict. The caller removes it at the end.
func ListenUnix(path string) (net.Listener, error) {
	if nc, err := net.Dial("unix", path); err == nil {
		nc.Close()
		return nil, corral.ErrorAt(corral.Conflict, path, "another process serves this socket")
	}
	if old, err := os.Lstat(path); err == nil && old.Mode().Type() != fs.ModeSocket {
		return nil, corral.ErrorAt(corral.Conflict, path, "is there, and no socket")
	}
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		return nil, corral.ErrorAt(corral.Invalid, path, "the path is too long for a socket")
	}
	fresh := path[:len(path)-1] + "~" // no longer than path, and its own
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing stale socket: %w", err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening socket: %w", err)
	}
	ln.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, path)); err != nil {
		ln.Close()
		os.Remove(fresh)
		return nil, fmt.Errorf("opening socket: %w", err)
	}
	return ln, nil
}

// ListenTLS opens a TLS 1.3 listener for Serve and returns the digest of its certificate, which who
// dials in must know.
func (p *Port) ListenTLS(addr string, cert tls.Certificate) (net.Listener, string, error) {
	ln, err := tls.Listen("tcp", addr, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return nil, "", fmt.Errorf("opening worker port: %w", err)
	}
	return ln, CertDigest(cert), nil
}

// Serve accepts connections from ln until ctx is done; then it closes ln and all connections, and
// returns nil once they are gone. It takes ln over.
func (p *Port) Serve(ctx context.Context, ln net.Listener) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer ln.Close() // by now, even if it was about to be
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	for {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		nc, err := ln.Accept()
		if err != nil {
			<-p.slots
			if ctx.Err() != nil {
				return nil
			}
			if !pause(ctx, err) {
				return fmt.Errorf("accepting workers: %w", err)
			}
			continue
		}
		conns.Go(func() {
			defer func() { <-p.slots }()
			p.serveConn(ctx, nc)
		})
	}
}

// pause waits after an error of Accept that may pass (no file descriptor is free, the peer is gone
// already); it reports false for one that stays.
func pause(ctx context.Context, err error) bool {
	var ne net.Error
	if !errors.As(err, &ne) || errors.Is(err, net.ErrClosed) {
		return false
	}
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return true
}

// serveConn serves one connection to its end.
func (p *Port) serveConn(ctx context.Context, nc net.Conn) {
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	_ = nc.SetDeadline(time.Now().Add(admitTimeout))
	c := newConn(nc)
	defer c.close()
	m, err := c.recv(maxHello)
	if err != nil || m.Type != typeHello {
		p.lg.Debug("connection without hello", "from", nc.RemoteAddr(), "err", err)
		return
	}
	began := time.Now()
	adm, err := p.admit(ctx, m.Hello)
	if err != nil {
		p.lg.Warn("refused", "role", m.Hello.Role, "tag", m.Hello.Tag, "id", m.Hello.ID, "err", err)
		refuse(c, err)
		return
	}
	if m.Hello.Role == RoleCourier {
		select {
		case p.bulk <- struct{}{}:
			defer func() { <-p.bulk }()
		default:
			refuse(c, corral.Errorf(corral.Unavailable, "files of %d jobs are on their way", maxCouriers))
			return
		}
	}
	s := &session{conn: c, attempt: adm.Attempt, hosts: max(1, adm.Hosts), began: began}
	s.send(adm.Dispatcher.terms())
	switch m.Hello.Role {
	case RolePilot:
		_ = nc.SetReadDeadline(time.Time{})
		p.servePilot(ctx, s, adm.Dispatcher)
	case RoleCourier:
		_ = nc.SetReadDeadline(time.Time{})
		adm.Dispatcher.serveCourier(ctx, c, m.Hello)
	case RoleWorker:
		adm.Dispatcher.serveWorker(s, m.Hello, adm)
	}
}

func (p *Port) admit(ctx context.Context, h *hello) (Admission, error) {
	if h.Version != Version {
		return Admission{}, corral.Errorf(corral.Invalid, "version %d of the worker protocol is not spoken here, only %d", h.Version, Version)
	}
	ctx, cancel := context.WithTimeout(ctx, admitTimeout)
	defer cancel()
	digest := sha256.Sum256([]byte(h.Token))
	adm, err := p.gate.Admit(ctx, Credentials{
		Role: h.Role, Tag: h.Tag, TokenDigest: hex.EncodeToString(digest[:]), Holder: h.Holder,
	})
	if err == nil && h.Role == RolePilot {
		err = p.gate.Lease(ctx, adm.Attempt, h.Holder)
	}
	return adm, err
}

// refuse tells the peer why and closes the connection. Errors that are not meant for others stay here.
func refuse(c *conn, err error) {
	m := &message{Type: typeRefuse, Kind: corral.KindOf(err), Reason: clip(err.Error())}
	if m.Kind == corral.Internal {
		m.Kind, m.Reason = corral.Unavailable, "the service has an error of its own; see its log"
	}
	c.send(m)
	c.finish()
}

// clip keeps reasons within what the protocol allows, and on one line, as whoever shows them wants it.
func clip(reason string) string {
	reason = strings.ReplaceAll(strings.TrimSpace(reason), "\n", "; ")
	if len(reason) > maxReasonLen {
		return reason[:maxReasonLen]
	}
	return reason
}
