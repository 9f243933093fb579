// Package port is where workers, their couriers and pilots dial in.
//
// The port reads one hello, asks its Gate whether the sender may come in, and hands the connection on: to the
// dispatcher of the cluster if it is a worker's or a courier's, to the links if it is a pilot's. Pilots of HTCondor
// clusters come here too, for their lease, their reports, and what is asked of them; they need no dispatcher.
//
// It listens on a Unix socket for this machine, with TLS for others, and takes what a relay brings from a site's
// network. All three are one to it: what admits a peer is its token. The certificate is known to peers by its digest,
// so no authority is needed.
//
// Before it is admitted, a connection costs a place, one small frame, and some seconds at most. Places are bounded, for
// couriers apart from the others, so that files on their way do not keep workers out.
package port

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
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/embedded/dispatch"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

const (
	maxConnections = 4096 // at one port, admitted or not
	maxCouriers    = 1024 // of them: workers and pilots must find places while many files are carried
)

// Credentials are what a hello shows.
type Credentials struct {
	Role        wire.Role
	Tag         string // of the attempt
	TokenDigest string // SHA-256 of the token, hex: the token itself goes no further than the port
	Holder      string // the pilot process that says it has the attempt's lease
	Session     string // SHA-256 of the secret that this process has made, hex; empty: none was shown

	Worker string           // the worker's id; empty for a pilot
	Shape  corral.Resources // of the worker
}

// An Admission says what the sender of a hello belongs to.
type Admission struct {
	Attempt    corral.JobID
	Hosts      int // of the attempt, each of which has a worker; 0: one
	CPUs       int // of the attempt, on all hosts: those of its workers are no more; 0: any
	Glidein    corral.GlideinID
	Cluster    corral.ClusterID
	Links      *Links               // that a pilot joins; their terms are those of every connection
	Dispatcher *dispatch.Dispatcher // that a worker takes its jobs from; nil for pilots of HTCondor clusters
}

// A Gate knows the attempts. Its errors are corral.Errors: their sentences are sent to the peer,
// which gives up on Unauthenticated, Forbidden, Conflict and Invalid, and tries again otherwise.
type Gate interface {
	// Admit checks the token, comparing digests in constant time, that the Holder of a worker and of its couriers has
	// the attempt's lease and the secret of its session, and that the worker is one of the attempt's.
	Admit(ctx context.Context, c Credentials) (Admission, error)

	// Lease gives the attempt's lease to holder, and opens the session whose secret has that digest; it is a Conflict
	// if another pilot has it, or the same one with another secret.
	Lease(ctx context.Context, attempt corral.JobID, holder, session string) error

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
	reach Reacher
}

// A Reacher dials addresses, each IP:PORT of a listener that sends nonce and a newline to whoever connects, and returns
// the one that it reached. An error of kind corral.Failed says what became of each of them.
type Reacher func(ctx context.Context, addresses []string, nonce string) (reached string, err error)

// New returns a port that admits whatever gate admits; reach dials pilots that ask to be called back.
func New(lg *slog.Logger, gate Gate, reach Reacher) *Port {
	return &Port{
		lg: lg, gate: gate, calls: newCallBacks(), reach: reach,
		slots: make(chan struct{}, maxConnections), bulk: make(chan struct{}, maxCouriers),
	}
}

// ServeUnix serves on a Unix socket that only this user can connect to, until ctx is done; then the
// socket is removed and all connections are closed. A socket that no process serves is replaced.
func (p *Port) ServeUnix(ctx context.Context, path string) error {
	ln, err := ListenUnix(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	return p.Serve(ctx, ln)
}

// CheckUnix says what keeps ListenUnix from opening this socket, and changes nothing.
func CheckUnix(path string) error {
	if nc, err := net.Dial("unix", path); err == nil {
		nc.Close()
		return corral.ErrorAt(corral.Conflict, path, "another process serves this socket")
	}
	if old, err := os.Lstat(path); err == nil && old.Mode().Type() != fs.ModeSocket {
		return corral.ErrorAt(corral.Conflict, path, "is there, and no socket")
	}
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		return corral.ErrorAt(corral.Invalid, path, "the path is too long for a socket")
	}
	return nil
}

// ListenUnix opens a Unix socket that only this user can connect to. The socket is made under another
// name first, so that it is never there with a wider mode. One that no process serves is replaced; one
// that a process serves, or a file that is not a socket, is a Conflict. The caller removes it at the end.
func ListenUnix(path string) (net.Listener, error) {
	if err := CheckUnix(path); err != nil {
		return nil, err
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

// ListenTLS opens a TLS 1.3 listener for Serve and returns the digest of its certificate, which
// peers must know.
func (p *Port) ListenTLS(addr string, cert tls.Certificate) (net.Listener, string, error) {
	ln, err := tls.Listen("tcp", addr, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return nil, "", fmt.Errorf("opening worker port: %w", err)
	}
	return ln, wire.CertDigest(cert), nil
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
			if _, passes := errors.AsType[net.Error](err); !passes || errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accepting workers: %w", err)
			}
			retry.For(ctx, acceptGap)
			continue
		}
		conns.Go(func() {
			defer func() { <-p.slots }()
			p.serveConn(ctx, nc)
		})
	}
}

// acceptGap is for an error of Accept to pass: no file descriptor is free, or the peer is gone already.
const acceptGap = 100 * time.Millisecond

// serveConn serves one connection to its end. Until the hello has been admitted there is AdmitTimeout for everything,
// so that a peer which says nothing cannot keep a place; from then on silence is judged by whoever the connection is
// handed to.
func (p *Port) serveConn(ctx context.Context, nc net.Conn) {
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	_ = nc.SetDeadline(time.Now().Add(wire.AdmitTimeout))
	c := wire.NewConn(nc)
	defer c.Close()
	m, err := c.Recv(wire.MaxHello)
	if err != nil || m.Type != wire.TypeHello {
		p.lg.Debug("connection without hello", "from", nc.RemoteAddr(), "error", err)
		return
	}
	began := time.Now()
	adm, err := p.admit(ctx, m.Hello)
	if err != nil {
		p.lg.Warn("refused", "role", m.Hello.Role, "tag", m.Hello.Tag, "id", m.Hello.ID, "error", err)
		wire.Refuse(c, err)
		return
	}
	if m.Hello.Role == wire.RoleCourier {
		select {
		case p.bulk <- struct{}{}:
			defer func() { <-p.bulk }()
		default:
			wire.Refuse(c, corral.Errorf(corral.Unavailable, "files of %d jobs are on their way", maxCouriers))
			return
		}
	}
	c.Send(adm.Links.Terms.Welcome(time.Now()))
	switch m.Hello.Role {
	case wire.RolePilot:
		_ = nc.SetReadDeadline(time.Time{})
		p.servePilot(ctx, c, adm)
	case wire.RoleCourier:
		_ = nc.SetReadDeadline(time.Time{})
		adm.Dispatcher.ServeCourier(ctx, c, m.Hello.ID, m.Hello.Instance)
	case wire.RoleWorker:
		adm.Dispatcher.ServeWorker(c, m.Hello.Instance, adm.worker(m.Hello, began), adm.CPUs)
	}
}

// admit asks the gate. Token and secret themselves go no further: the gate compares digests. A pilot is given its
// attempt's lease in the same step, which is what it dials in for.
func (p *Port) admit(ctx context.Context, h *wire.Hello) (Admission, error) {
	if h.Version != wire.Version {
		return Admission{}, corral.Errorf(corral.Invalid,
			"version %d of the worker protocol is not spoken here, only %d: "+
				"pilots of another version of corrald have to be replaced", h.Version, wire.Version)
	}
	ctx, cancel := context.WithTimeout(ctx, wire.AdmitTimeout)
	defer cancel()
	cred := Credentials{
		Role: h.Role, Tag: h.Tag, TokenDigest: digestOf(h.Token), Holder: h.Holder,
	}
	if h.Secret != "" {
		cred.Session = digestOf(h.Secret)
	}
	if h.Role != wire.RolePilot {
		cred.Worker = h.ID
		cred.Shape = corral.Resources{CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, GPUs: h.GPUs, DiskMiB: h.DiskMiB}
	}
	adm, err := p.gate.Admit(ctx, cred)
	if err == nil && h.Role == wire.RolePilot {
		err = p.gate.Lease(ctx, adm.Attempt, h.Holder, cred.Session)
	}
	return adm, err
}

// digestOf is what is kept of a secret.
func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// worker describes the worker that h, which came at began, introduces.
func (a Admission) worker(h *wire.Hello, began time.Time) corral.Worker {
	return corral.Worker{
		ID: h.ID, Cluster: a.Cluster, Glidein: a.Glidein, Attempt: a.Attempt, Host: h.Host, PID: h.PID,
		CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, GPUs: h.GPUs, DiskMiB: h.DiskMiB,
		EndsAt: began.Add(time.Duration(h.LeftMS) * time.Millisecond),
	}
}
