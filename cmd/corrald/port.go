package main

// Workers connect to corrald, never the other way round, because nodes of a site are often behind a firewall. There are
// two ports. Workers on this machine use a Unix socket, which only their user may open. All other workers use TCP with
// TLS and corrald's own certificate, whose digest is included in each pilot's order.
//
// The TCP port is opened only when it is needed, because most set-ups never need it. Its address must not change after
// it has been opened, because the orders of pilots that wait in a queue for days contain this address. Hence the
// address is saved, and after a restart corrald retries the same address until it is free.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/broker"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/embedded/wire"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/internal/sites/admission"
)

// A workerPort is the endpoint for workers: a Unix socket for site local, and for all other sites a TCP port with TLS,
// which is opened when the first of these sites needs it. The address and the certificate survive a restart, because
// they are in the orders of pilots that are still queued. While another program uses the address, these pilots and
// other sites wait; site local is served.
type workerPort struct {
	lg        *slog.Logger
	port      *port.Port
	socket    string
	advertise string
	dir       string            // contains the certificate and the address
	opened    chan net.Listener // receives the TLS listener, once, to be served
	reopen    bool              // there is a saved address
	choose    bool              // choose the address when the first site needs it

	// local returns this machine's address on the route to a site's nodes.
	local func(corral.Site) netip.Addr

	mu      sync.Mutex // guards the fields below
	listen  string
	address string // HOST:PORT for sites; "" while closed
	bound   string // HOST:PORT where it listens
	digest  string
}

// newWorkerPort returns a closed port. serve reopens it at the saved address, if there is one.
func newWorkerPort(lg *slog.Logger, admits port.Gate, s settings) (*workerPort, error) {
	w := &workerPort{
		lg:        lg,
		port:      port.New(lg, admits, broker.Reach),
		socket:    s.layout.Worker,
		listen:    s.worker.listen,
		advertise: s.worker.advertise,
		dir:       s.layout.Certificate(),
		choose:    s.worker.listen == "",
		local:     func(corral.Site) netip.Addr { return gridsite.LocalIP() },
		opened:    make(chan net.Listener, 1),
	}
	before, err := os.ReadFile(w.addressFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w, nil
	case err != nil:
		return nil, fmt.Errorf("reading the worker port's address: %w", err)
	}
	w.listen, w.reopen = again(s.worker.listen, strings.TrimSpace(string(before))), true
	return w, nil
}

// again returns the address on which to listen after a restart: the flag's address or, if there is no flag, the
// previous address. If the flag's port is 0, the previous port is used, because the orders of queued pilots contain it.
func again(flag, before string) string {
	if flag == "" {
		return before
	}
	host, port, err := net.SplitHostPort(flag)
	if err != nil || port != "0" {
		return flag
	}
	if _, port, err = net.SplitHostPort(before); err != nil {
		return flag
	}
	return net.JoinHostPort(host, port)
}

// addressFile contains the last address of the TCP port.
func (w *workerPort) addressFile() string { return filepath.Join(w.dir, "address") }

// serve serves workers until ctx ends.
func (w *workerPort) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unix := make(chan error, 1)
	go func() { unix <- w.port.ServeUnix(ctx, w.socket) }()
	tls := make(chan error, 1)
	go func() {
		if w.reopen {
			w.openAgain(ctx)
		}
		tls <- w.serveTLS(ctx)
	}()
	select { // when one server ends, the other is also ended
	case err := <-unix:
		cancel()
		return errors.Join(err, <-tls)
	case err := <-tls:
		cancel()
		return errors.Join(err, <-unix)
	}
}

// serveTLS serves the TCP port once it is opened, which may never happen. A listener that arrives after ctx has ended
// is closed here, because no other goroutine would close it.
func (w *workerPort) serveTLS(ctx context.Context) error {
	select {
	case l := <-w.opened:
		return w.port.Serve(ctx, l)
	case <-ctx.Done():
	}
	select {
	case l := <-w.opened: // opened just now
		return l.Close()
	default:
		return nil
	}
}

// openAgain reopens the TCP port at its previous address as soon as that address is free. It never gives up: queued
// pilots have no other address, and all other functions work in the meantime.
func (w *workerPort) openAgain(ctx context.Context) {
	const pause = time.Second // a pilot that receives no answer retries after about 2 s
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for logged := false; ; logged = true {
		_, _, err := w.open(corral.Site{})
		if err == nil {
			return
		}
		if !logged {
			w.lg.Error("worker port stays closed; pilots of sites other than local cannot connect", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// For implements admission.Address.
func (w *workerPort) For(site corral.Site) (addresses []string, certDigest string, err error) {
	if site.Name == personal.Site {
		return []string{"unix:" + w.socket}, "", nil
	}
	address, digest, err := w.open(site)
	if err != nil {
		return nil, "", err
	}
	address = dialable(address, func() netip.Addr { return w.local(site) })
	return []string{"tls:" + address}, digest, nil
}

// dialable returns an address for clients: an unspecified address is replaced with the local one.
func dialable(address string, local func() netip.Addr) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().IsUnspecified() { // a name, or a specific address
		return address
	}
	return netip.AddrPortFrom(local(), a.Port()).String()
}

// Dial implements admission.Address: it connects to the address on which the TCP port listens, regardless of the
// address advertised to sites.
func (w *workerPort) Dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	bound := w.bound
	w.mu.Unlock()
	if bound == "" { // it will be reopened at its previous address
		return nil, corral.Errorf(corral.Unavailable, "the worker port is closed")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", bound)
}

var _ admission.Address = (*workerPort)(nil)

// open opens the TCP port unless it is open, and returns the address for sites and the digest of the certificate.
// Without a flag it listens on this machine's address on the route to the first site that needs the port. A laptop may
// have moved to another network since the address was saved. The saved address then no longer belongs to this machine,
// and a new address is chosen, with the same port.
func (w *workerPort) open(site corral.Site) (address, digest string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.address != "" {
		return w.address, w.digest, nil
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return "", "", fmt.Errorf("creating the worker port's directory: %w", err)
	}
	cert, err := wire.LoadOrCreateCertificate(w.dir)
	if err != nil {
		return "", "", err
	}
	if w.listen == "" {
		w.listen = net.JoinHostPort(w.local(site).String(), "0")
	}
	l, digest, err := w.port.ListenTLS(w.listen, cert)
	if w.choose && errors.Is(err, syscall.EADDRNOTAVAIL) { // this machine has moved
		_, port, _ := net.SplitHostPort(w.listen)
		w.listen = net.JoinHostPort(w.local(site).String(), port)
		l, digest, err = w.port.ListenTLS(w.listen, cert)
	}
	if err != nil {
		return "", "", corral.ErrorAt(corral.Failed, "--worker-listen", "%w", err)
	}
	bound := l.Addr()
	if err := w.keepAddress(bound.String()); err != nil {
		return "", "", errors.Join(err, l.Close())
	}
	// never blocks: the channel has room for the only listener
	w.opened <- l
	w.address, w.bound, w.digest = advertised(w.advertise, bound), bound.String(), digest
	w.lg.Info("worker port is open", "listen", bound.String(), "advertise", w.address)
	return w.address, w.digest, nil
}

// keepAddress saves the address atomically.
func (w *workerPort) keepAddress(bound string) error {
	file := w.addressFile()
	err := errors.Join(os.WriteFile(file+".new", []byte(bound+"\n"), 0o600), os.Rename(file+".new", file))
	return wrap.Errorf(err, "saving the worker port's address")
}

// advertised returns the address for sites: the address that the administrator set, with the bound port if that address
// contains no port.
func advertised(advertise string, bound net.Addr) string {
	if advertise == "" {
		return bound.String()
	}
	if _, _, err := net.SplitHostPort(advertise); err == nil {
		return advertise
	}
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return advertise // unreachable: a TCP address has a port
	}
	return net.JoinHostPort(advertise, port)
}
