package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// hello is the first line from the head node: its protocol version, and its addresses for the nodes.
type hello struct {
	Relay     int              `json:"relay"` // version
	Addresses []netip.AddrPort `json:"addresses"`
}

// A place is a relay's note to the next one at the site. The orders of queued pilots contain its port, so the next
// relay must listen at the same port.
type place struct {
	Host string   `json:"host"`
	Port int      `json:"port"`
	PID  int      `json:"pid"`
	Args []string `json:"args"` // command line of the process
}

const takeOverTime = 10 * time.Second // limit for an earlier relay to release its port

// Run is the head node's side. It listens, at the earlier relay's port if file has one, reports its addresses on stdio,
// and forwards connections until ctx or stdio ends. If an earlier relay still uses the port, because it has not noticed
// that its corrald is gone, Run ends it.
func Run(ctx context.Context, lg *slog.Logger, file string, stdio io.ReadWriteCloser) error {
	ln, err := listen(ctx, file)
	if err != nil {
		return err
	}
	defer ln.Close()
	addresses, err := inside(ln)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(stdio).Encode(hello{Relay: 1, Addresses: addresses}); err != nil {
		return fmt.Errorf("greeting corrald: %w", err)
	}
	// From here on stdio belongs to the streams. Logs go to stderr.
	mux, err := yamux.Client(stdio, multiplexing())
	if err != nil {
		return err // unreachable: the configuration is valid
	}
	lg.Info("the relay listens", "addresses", addresses)
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	go func() { <-mux.CloseChan(); ln.Close() }() // the ssh connection is lost, and with it corrald
	// Any program that reaches the head node can connect, which must not exhaust the relay's memory.
	slots := make(chan struct{}, maxStreams)
	for {
		nc, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // temporary: this process has too many open files
			lg.Warn("the relay could not accept a connection", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
			go func() { pass(mux, nc); <-slots }()
		default:
			nc.Close()
		}
	}
}

// pass carries one connection to corrald after its request. A connection without a request, or with a refused one, is
// closed, because it could otherwise occupy a place indefinitely.
func pass(mux *yamux.Session, nc net.Conn) {
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(openTime))
	request, err := readLine(nc)
	if err != nil {
		return
	}
	st, err := mux.OpenStream()
	if err != nil {
		return
	}
	defer st.Close()
	// corrald answers within openTime; the rest is for the transmission.
	within := time.Now().Add(2 * openTime)
	_, _ = nc.SetDeadline(within), st.SetDeadline(within)
	if _, err := io.WriteString(st, request+"\n"); err != nil {
		return
	}
	said, err := readLine(st)
	if err != nil {
		return
	}
	if _, err := io.WriteString(nc, said+"\n"); err != nil || said != admitted {
		return
	}
	_, _ = nc.SetDeadline(time.Time{}), st.SetDeadline(time.Time{})
	join(nc, &tube{Stream: st})
}

// listen opens the port of the earlier relay, or else another.
func listen(ctx context.Context, file string) (net.Listener, error) {
	host, _ := os.Hostname()
	var before place
	if b, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(b, &before) // an unreadable note counts as none
	}
	// The earlier relay may not have noticed yet that its corrald is gone, because ssh detects that late. Its pid is
	// valid only on this host; a site may have several head nodes.
	if before.Host == host {
		before.end()
	}
	var ln net.Listener
	var err error = syscall.EADDRINUSE
	if before.Port != 0 {
		ln, err = again(ctx, before.Port)
	}
	if errors.Is(err, syscall.EADDRINUSE) { // there was no port, or another program uses it now
		ln, err = listenAnywhere()
	}
	if err != nil {
		return nil, fmt.Errorf("listening for worker nodes: %w", err)
	}
	now := place{Host: host, Port: ln.Addr().(*net.TCPAddr).Port, PID: os.Getpid(), Args: os.Args}
	if err := now.write(file); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// again opens the port of a relay that is about to release it, waiting at most takeOverTime.
func again(ctx context.Context, port int) (net.Listener, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(takeOverTime); ; <-tick.C {
		ln, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) || ctx.Err() != nil {
			return ln, err
		}
	}
}

// Ports of relays: above those of services and below the range that Linux uses for outgoing connections, one of which
// could otherwise occupy the port before the next relay does.
const firstPort, lastPort = 20000, 32767

// listenAnywhere opens a port for a site's first relay.
func listenAnywhere() (net.Listener, error) {
	for range 20 {
		if ln, err := net.Listen("tcp", ":"+strconv.Itoa(firstPort+rand.N(lastPort-firstPort+1))); err == nil {
			return ln, nil
		}
	}
	return net.Listen("tcp", ":0")
}

// end ends the process that wrote p. Its pid may have been reused, which the arguments reveal.
func (p place) end() {
	args, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
	if err != nil || p.PID == os.Getpid() || len(p.Args) == 0 {
		return
	}
	if bytes.Equal(args, []byte(strings.Join(p.Args, "\x00")+"\x00")) {
		_ = syscall.Kill(p.PID, syscall.SIGTERM) // fails if it has just ended by itself
	}
}

// write stores p in file for the next relay.
func (p place) write(file string) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err // unreachable: p has only strings and numbers
	}
	return wrap.Errorf(atomicfile.Replace(file, b, 0o600), "noting the relay's port")
}

// inside returns the addresses at which nodes may reach ln: private ones first, because nodes often cannot reach a head
// node's public address; loopback only if there is no other.
func inside(ln net.Listener) ([]netip.AddrPort, error) {
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing this machine's addresses: %w", err)
	}
	var found []netip.AddrPort
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			found = append(found, netip.AddrPortFrom(p.Addr().Unmap(), port))
		}
	}
	slices.SortStableFunc(found, func(a, b netip.AddrPort) int { return rank(a.Addr()) - rank(b.Addr()) })
	if len(found) == 0 {
		found = append(found, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
	}
	return found[:min(len(found), maxAddresses)], nil
}

// rank orders private addresses before public ones.
func rank(a netip.Addr) int {
	if a.IsPrivate() {
		return 0
	}
	return 1
}
