package main

// Workers dial in, and never the other way round, since nodes of a site are often behind a firewall. There are two
// doors: a Unix socket for workers on this machine, which only their user may open, and for all others TCP with TLS,
// whose certificate is corrald's own; its digest travels in each pilot's order.
//
// The TCP door opens late, because most set-ups never need it, and once open it must not move: pilots that wait in a
// queue for days hold its address. Hence it is written down, and after a restart the same address is tried until it is
// free.

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
	"github.com/corral-pilot/corral/embedded/port"
	"github.com/corral-pilot/corral/embedded/wire"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/internal/sites/admission"
)

// A workerPort is where workers dial in: a Unix socket for site local, and for all other sites a TCP
// port with TLS, which is opened when the first of them needs it. Its address and certificate survive
// a restart: they stand in the orders of pilots that are still queued. While something else has the
// address, those pilots wait, and so do other sites; site local is served.
type workerPort struct {
	lg        *slog.Logger
	port      *port.Port
	socket    string
	advertise string
	dir       string            // holds the certificate and the address
	opened    chan net.Listener // the TLS listener, once, to be served
	reopen    bool              // there was an address before
	choose    bool              // where to listen, as the first site needs it

	// local returns the address that this machine has on the way to a site's nodes.
	local func(corral.Site) netip.Addr

	mu      sync.Mutex // guards following
	listen  string
	address string // HOST:PORT that sites dial; "" while closed
	bound   string // HOST:PORT where it listens
	digest  string
}

// newWorkerPort makes the port, closed. An address that was kept is opened again by serve.
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

// again returns where to listen after a restart: where the flag says, except that a port which the flag leaves open is
// the one of before, since the orders of queued pilots name it.
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

// addressFile keeps where the TCP port listened last.
func (w *workerPort) addressFile() string { return filepath.Join(w.dir, "address") }

// serve answers workers until ctx ends.
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
	select { // the first to end ends the other
	case err := <-unix:
		cancel()
		return errors.Join(err, <-tls)
	case err := <-tls:
		cancel()
		return errors.Join(err, <-unix)
	}
}

// serveTLS serves the TCP port from when it is opened, which may be never. A listener that came at the very end is
// closed here, because no other goroutine knows of it.
func (w *workerPort) serveTLS(ctx context.Context) error {
	select {
	case l := <-w.opened:
		return w.port.Serve(ctx, l)
	case <-ctx.Done():
	}
	select {
	case l := <-w.opened: // just now
		return l.Close()
	default:
		return nil
	}
}

// openAgain opens the TCP port at the address that it had before, as soon as that is free. It never gives up: pilots
// that wait in queues know no other address, and meanwhile everything else works.
func (w *workerPort) openAgain(ctx context.Context) {
	const pause = time.Second // a pilot that gets no answer tries again after about two
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for logged := false; ; logged = true {
		_, _, err := w.open(corral.Site{})
		if err == nil {
			return
		}
		if !logged {
			w.lg.Error("worker port stays closed; pilots of sites other than local cannot come in", "error", err)
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

// dialable returns an address as others dial it: the local one in place of one that stands for all of this machine's.
func dialable(address string, local func() netip.Addr) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().IsUnspecified() { // a name, or one of them
		return address
	}
	return netip.AddrPortFrom(local(), a.Port()).String()
}

// Dial implements admission.Address: it connects with the TCP port where it listens, whatever address sites are told.
func (w *workerPort) Dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	bound := w.bound
	w.mu.Unlock()
	if bound == "" { // it is about to be opened again, where it was before
		return nil, corral.Errorf(corral.Unavailable, "the worker port is closed")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", bound)
}

var _ admission.Address = (*workerPort)(nil)

// open opens the TCP port unless it is open, and returns the address that sites dial and the digest of the certificate.
// Without a flag it listens on the address on the way to the first site that needs it. A laptop may have moved to
// another network since it last listened: then the kept address is not this machine's any more, and a new one is
// chosen, under the same port.
func (w *workerPort) open(site corral.Site) (address, digest string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.address != "" {
		return w.address, w.digest, nil
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return "", "", fmt.Errorf("making the worker port's directory: %w", err)
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
	// never blocks: there is room for the only listener
	w.opened <- l
	w.address, w.bound, w.digest = advertised(w.advertise, bound), bound.String(), digest
	w.lg.Info("worker port is open", "listen", bound.String(), "advertise", w.address)
	return w.address, w.digest, nil
}

// keepAddress writes the address down, whole or not at all.
func (w *workerPort) keepAddress(bound string) error {
	file := w.addressFile()
	err := errors.Join(os.WriteFile(file+".new", []byte(bound+"\n"), 0o600), os.Rename(file+".new", file))
	if err != nil {
		return fmt.Errorf("keeping the worker port's address: %w", err)
	}
	return nil
}

// advertised returns the address for sites: the administrator's, with the bound port if it has none.
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
