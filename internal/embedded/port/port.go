// Package port is the endpoint where workers, their couriers and pilots connect.
//
// The port reads one hello, asks its Gate to admit the sender, and passes the connection on: to the cluster's
// dispatcher for a worker or courier, to the links for a pilot. Pilots of HTCondor clusters also connect here, for
// their lease, reports and requests; they need no dispatcher.
//
// The port listens on a Unix socket for this machine and with TLS for others, and accepts connections that a relay
// forwards from a site's network. All three are treated alike: a peer is admitted by its token. Peers know the
// certificate by its digest, so no certificate authority is needed.
//
// Before it is admitted, a connection costs one slot, one small frame, and at most a few seconds. Slots are limited,
// separately for couriers, so that file transfers do not keep workers out.
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
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/retry"
)

const (
	maxConnections = 4096 // at one port, whether admitted or not
	maxCouriers    = 1024 // of them: workers and pilots must get slots while many files are transferred
)

// Credentials are the parts of a hello that the Gate checks.
type Credentials struct {
	Role        wire.Role
	Tag         string // of the attempt
	TokenDigest string // SHA-256 of the token, hex: the token itself stays in the port
	Holder      string // the pilot process that claims the attempt's lease
	Session     string // SHA-256 of the secret that this process has created, hex; empty: no secret was sent

	Worker string           // the worker's id; empty for a pilot
	Shape  corral.Resources // of the worker
}

// An Admission describes the attempt, glidein and cluster to which the sender of a hello belongs.
type Admission struct {
	Attempt    corral.JobID
	Hosts      int // of the attempt, with one worker each; 0: one
	CPUs       int // of the attempt, on all hosts; its workers may not have more; 0: any number
	Glidein    corral.GlideinID
	Cluster    corral.ClusterID
	Links      *Links               // for the pilot; they define the terms of every connection
	Dispatcher *dispatch.Dispatcher // the source of a worker's jobs; nil for pilots of HTCondor clusters
}

// A Gate decides which attempts are admitted. Its errors are corral.Errors: their messages are sent to the peer, which
// gives up on Unauthenticated, Forbidden, Conflict and Invalid, and tries again otherwise.
type Gate interface {
	// Admit checks the token, comparing digests in constant time. For a worker and its couriers it also checks that
	// their Holder has the attempt's lease and the secret of the session, and that the worker belongs to the attempt.
	Admit(ctx context.Context, c Credentials) (Admission, error)

	// Lease gives the attempt's lease to holder, and opens the session whose secret has the given digest. The error is
	// a Conflict if another pilot has the lease, or the same pilot with another secret.
	Lease(ctx context.Context, attempt corral.JobID, holder, session string) error

	// Report records the phase of an attempt.
	Report(ctx context.Context, attempt corral.JobID, phase, reason string) error

	// LoseHost records that an attempt continues without one of its hosts; it may be repeated.
	LoseHost(ctx context.Context, attempt corral.JobID, lost corral.LostHost) error
}

// A Port is the endpoint where workers and pilots connect. It accepts only the worker protocol.
type Port struct {
	lg    *slog.Logger
	gate  Gate
	slots chan struct{} // one for each connection
	bulk  chan struct{} // one for each courier
	calls callBacks
	reach Reacher
}

// A Reacher dials addresses and returns the address that it reached. Each address is the IP:PORT of a listener that
// sends nonce and a newline to each client. An error of kind corral.Failed describes the result for each address.
type Reacher func(ctx context.Context, addresses []string, nonce string) (reached string, err error)

// New returns a port that admits the peers that gate admits; reach dials pilots that request to be called back.
func New(lg *slog.Logger, gate Gate, reach Reacher) *Port {
	return &Port{
		lg: lg, gate: gate, calls: newCallBacks(), reach: reach,
		slots: make(chan struct{}, maxConnections), bulk: make(chan struct{}, maxCouriers),
	}
}

// ServeUnix serves on a Unix socket that only this user can connect to, until ctx is done; then it removes the socket
// and closes all connections. It replaces a socket that no process serves.
func (p *Port) ServeUnix(ctx context.Context, path string) error {
	ln, err := ListenUnix(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	return p.Serve(ctx, ln)
}

// CheckUnix returns the error that would prevent ListenUnix from opening this socket. It changes nothing.
func CheckUnix(path string) error {
	if nc, err := net.Dial("unix", path); err == nil {
		nc.Close()
		return corral.ErrorAt(corral.Conflict, path, "another process serves this socket")
	}
	if old, err := os.Lstat(path); err == nil && old.Mode().Type() != fs.ModeSocket {
		return corral.ErrorAt(corral.Conflict, path, "exists and is not a socket")
	}
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		return corral.ErrorAt(corral.Invalid, path, "the path is too long for a socket")
	}
	return nil
}

// ListenUnix opens a Unix socket that only this user can connect to. The socket is first created under another name, so
// that it never exists with wider permissions. A socket that no process serves is replaced; a socket in use, or a file
// that is not a socket, is a Conflict. The caller must remove the socket at the end.
func ListenUnix(path string) (net.Listener, error) {
	if err := CheckUnix(path); err != nil {
		return nil, err
	}
	fresh := path[:len(path)-1] + "~" // not longer than path, and unique to it
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

// ListenTLS opens a TLS 1.3 listener for Serve and returns the digest of its certificate, which peers must know.
func (p *Port) ListenTLS(addr string, cert tls.Certificate) (net.Listener, string, error) {
	ln, err := tls.Listen("tcp", addr, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return nil, "", fmt.Errorf("opening worker port: %w", err)
	}
	return ln, wire.CertDigest(cert), nil
}

// Serve accepts connections from ln until ctx is done; then it closes ln and all connections, and returns nil once they
// have ended. Serve always closes ln.
func (p *Port) Serve(ctx context.Context, ln net.Listener) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer ln.Close() // before Serve returns, even if stop is about to close it
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

// acceptGap is the pause after an error of Accept that may pass: no file descriptor is free, or the peer has already
// closed the connection.
const acceptGap = 100 * time.Millisecond

// serveConn serves one connection to its end. AdmitTimeout limits the time until the hello is admitted, so that a
// silent peer cannot occupy a slot; afterwards, the handler of the connection decides how long a peer may be silent.
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
			wire.Refuse(c, corral.Errorf(corral.Unavailable, "the files of %d jobs are in transit", maxCouriers))
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

// admit asks the gate. The token and the secret are not passed on: the gate compares digests. In the same step a pilot
// receives its attempt's lease, which is the reason why it connects.
func (p *Port) admit(ctx context.Context, h *wire.Hello) (Admission, error) {
	if h.Version != wire.Version {
		return Admission{}, corral.Errorf(corral.Invalid,
			"version %d of the worker protocol is not supported, only version %d: "+
				"pilots started by another version of corrald must be replaced", h.Version, wire.Version)
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

// digestOf returns the digest of a secret. The digest is kept in place of the secret.
func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// worker describes the worker of the hello h, which was received at began.
func (a Admission) worker(h *wire.Hello, began time.Time) corral.Worker {
	return corral.Worker{
		ID: h.ID, Cluster: a.Cluster, Glidein: a.Glidein, Attempt: a.Attempt, Host: h.Host, PID: h.PID,
		CPUs: h.CPUs, MemoryMiB: h.MemoryMiB, GPUs: h.GPUs, DiskMiB: h.DiskMiB,
		EndsAt: began.Add(time.Duration(h.LeftMS) * time.Millisecond), Speed: h.Speed,
	}
}
