package broker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
)

// A firewall that drops packets gives no answer, so the time-outs determine the duration of a measurement in the worst
// case. A pilot measures once, while its processors wait.
const (
	dialTimeout  = 3 * time.Second // to connect; the cost of dropped packets
	totalTimeout = 6 * time.Second // of all probes, which run concurrently
	maxAddresses = 8               // of this node, for the pool's side to dial
	maxBrokers   = 16
)

// measure dials the collector and the brokers, and asks the pool's side to dial this node, all concurrently and within
// a few seconds. It omits the last step for a forced mode that does not depend on it. An error concerns c or ctx: an
// unreachable address is a finding.
func measure(ctx context.Context, c Config) (Findings, error) {
	if err := c.check(); err != nil {
		return Findings{}, err
	}
	// Each probe writes a field of its own, so no lock is needed.
	within, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	f := Findings{Brokers: make([]Target, len(c.CCB)), Streams: c.Streams, Relays: make([]Target, len(c.Relays))}
	var probes sync.WaitGroup
	probes.Go(func() { f.Collector = dial(within, c.Collector) })
	if c.Schedd != "" {
		probes.Go(func() { f.Schedd = dial(within, c.Schedd) })
	}
	for i, address := range c.CCB {
		probes.Go(func() { f.Brokers[i] = dial(within, address) })
	}
	for i, address := range c.Relays {
		probes.Go(func() { f.Relays[i] = dialBy(within, c.DialRelay, address) })
	}
	probes.Go(func() { f.Node = c.beCalled(within) })
	probes.Wait()
	return f, ctx.Err()
}

// check rejects addresses that cannot be dialled, before anything is measured.
func (c Config) check() error {
	if len(c.CCB) > maxBrokers {
		return corral.ErrorAt(corral.Invalid, "--ccb", "%d brokers are given; %d are enough", len(c.CCB), maxBrokers)
	}
	addresses := append([]string{c.Collector}, c.CCB...)
	if c.Schedd != "" {
		addresses = append(addresses, c.Schedd)
	}
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
			return corral.Errorf(corral.Invalid, "address %q is not HOST:PORT", address)
		}
	}
	return nil
}

// dial connects to address and closes the connection.
func dial(ctx context.Context, address string) Target {
	d := net.Dialer{Timeout: dialTimeout}
	tcp := func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
	return dialBy(ctx, tcp, address)
}

// dialBy connects to address with the given dialer, and closes the connection.
func dialBy(ctx context.Context, way func(context.Context, string) (net.Conn, error), address string) Target {
	began := time.Now()
	nc, err := way(ctx, address)
	if err != nil {
		return Target{Address: address, Trouble: trouble(err)}
	}
	defer nc.Close()
	took := time.Since(began)
	return Target{
		Address: address, Local: endOf(nc.LocalAddr()).Addr(), Remote: endOf(nc.RemoteAddr()),
		TookMS: float64(took.Microseconds()) / 1000,
	}
}

// endOf returns the address of one end of a connection. It converts IPv4 addresses in IPv6 notation to plain IPv4, so
// that addresses can be compared.
func endOf(a net.Addr) netip.AddrPort {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// Troubles on which decisions depend.
const (
	refused     = "connection refused"
	noRoute     = "no route"
	unknownName = "the name is not known"
)

// trouble describes briefly why a connection failed. A refusal differs from silence: a refusal means that a machine
// exists, and silence may mean a firewall that drops packets.
func trouble(err error) string {
	var dns *net.DNSError
	var ne net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return unknownName
	case errors.As(err, &dns): // a failure of the name server says nothing about the machine
		return "looking up its name: " + dns.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.ENETUNREACH):
		return noRoute
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "host unreachable"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return "timed out"
	}
	return err.Error()
}

// beCalled listens at this node's addresses and asks the pool's side to dial them. It closes the listeners before it
// returns.
func (c Config) beCalled(ctx context.Context) Node {
	switch {
	case c.Mode == corral.BrokerCCB, c.Mode == corral.BrokerRelay:
		return Node{Trouble: "--broker " + string(c.Mode) + " does not depend on it"}
	case c.CallBack == nil:
		return Node{Trouble: "there is no link to the pool's side"}
	}
	inv := invite(ctx, c)
	defer inv.close()
	n := Node{Addresses: inv.Addresses}
	if len(n.Addresses) == 0 {
		n.Trouble = inv.Trouble
		return n
	}
	// The listeners stay open while the pool's side dials.
	reached, err := c.CallBack(ctx, inv.Addresses, inv.Nonce)
	return n.called(reached, err)
}

// called returns n with the result of a CallBack for its addresses.
func (n Node) called(reached string, err error) Node {
	switch {
	case err == nil && slices.Contains(n.Addresses, reached):
		n.Asked, n.Reached = true, reached
	case err == nil:
		n.Trouble = "the pool's side returned an address that was not requested"
	case corral.KindOf(err) == corral.Failed:
		n.Asked, n.Trouble = true, err.Error()
	default:
		n.Trouble = err.Error()
	}
	return n
}

// An invitation has the arguments of a CallBack, and the listeners that answer it.
type invitation struct {
	Addresses []string `json:"addresses"` // IP:PORT; listeners that send Nonce
	Nonce     string   `json:"nonce"`
	Trouble   string   `json:"trouble,omitempty"` // why there are no addresses

	listeners []net.Listener
	answering sync.WaitGroup
}

// invite listens at the addresses of this node at which the pool's side might reach it. The caller must close the
// invitation.
func invite(ctx context.Context, c Config) *invitation {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	inv := &invitation{
		Nonce: hex.EncodeToString(random), Trouble: "this node has no address at which it could be reached",
	}
	for _, addr := range candidates(ctx, c.Collector) {
		ln, err := listenIn(addr, c.Ports)
		if err != nil {
			inv.Trouble = err.Error()
			continue
		}
		inv.listeners = append(inv.listeners, ln)
		inv.Addresses = append(inv.Addresses, ln.Addr().String())
		inv.answering.Go(func() { answer(ln, inv.Nonce) })
	}
	if len(inv.Addresses) > 0 {
		inv.Trouble = ""
	}
	return inv
}

// listenIn listens at a free port of addr within ports. Sites open a range of ports in their firewalls, so only ports
// in that range show whether a worker, which also uses it, could be reached.
func listenIn(addr netip.Addr, ports [2]uint16) (net.Listener, error) {
	if ports == [2]uint16{} {
		return net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	}
	for port := int(ports[0]); port <= int(ports[1]); port++ {
		ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, uint16(port)).String())
		if !errors.Is(err, syscall.EADDRINUSE) {
			return ln, err
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free at this node", ports[0], ports[1])
}

// close closes the listeners and waits for the last answer.
func (inv *invitation) close() {
	for _, ln := range inv.listeners {
		ln.Close()
	}
	inv.answering.Wait()
}

// answer sends nonce to every connection until ln is closed.
func answer(ln net.Listener, nonce string) {
	for {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(nc, nonce+"\n") // fits into the socket's buffer
		nc.Close()
	}
}

// candidates returns the addresses at which the pool's side might reach this node: first the source addresses towards
// the collector, then others of the same families that are not loopback.
func candidates(ctx context.Context, collector string) []netip.Addr {
	host, port, _ := net.SplitHostPort(collector)
	remote, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	var found []netip.Addr
	var four, six bool
	add := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(found, a) && len(found) < maxAddresses {
			found = append(found, a)
		}
	}
	// A machine may have addresses unrelated to the pool, so only families with a route to the pool are used.
	for _, r := range remote {
		local := source(ctx, net.JoinHostPort(r.Unmap().String(), port))
		add(local)
		if !local.IsLoopback() {
			four, six = four || local.Is4(), six || local.Is6()
		}
	}
	// The node may have others that the pool's side can reach, such as those of a second network card.
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if a := p.Addr().Unmap(); a.IsGlobalUnicast() && (a.Is4() && four || a.Is6() && six) {
			add(a)
		}
	}
	return found
}

// source returns the address from which this node would send to remote: connecting a UDP socket looks up the route and
// sends nothing.
func source(ctx context.Context, remote string) netip.Addr {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "udp", remote)
	if err != nil {
		return netip.Addr{}
	}
	defer nc.Close()
	return endOf(nc.LocalAddr()).Addr()
}
