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
)

// hello is the first line that the head node writes: which protocol it speaks, and where its nodes find it.
type hello struct {
	Relay     int              `json:"relay"` // version
	Addresses []netip.AddrPort `json:"addresses"`
}

// A place is what a relay leaves for the next one at the site. The orders of pilots that wait in the queue name its
// port, so the next relay has to listen there too.
type place struct {
	Host string   `json:"host"`
	Port int      `json:"port"`
	PID  int      `json:"pid"`
	Args []string `json:"args"` // of the process
}

const takeOverTime = 10 * time.Second // for an earlier relay to leave its port

// Run is the head node's side. It listens, at the port that the relay before it had if file says one, tells so on
// stdio, and passes on connections until ctx or stdio ends. An earlier relay that still has the port, whose corrald is
// gone and which does not know it yet, is ended.
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
		return err // unreachable: the configuration is good
	}
	lg.Info("the relay listens", "addresses", addresses)
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	go func() { <-mux.CloseChan(); ln.Close() }() // the ssh connection is gone, and corrald with it
	// Any program that reaches the head node can connect, which must not fill the relay's memory.
	slots := make(chan struct{}, maxStreams)
	for {
		nc, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // this process has too many files open, which passes
			lg.Warn("the relay takes no connection", "error", err)
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

// pass carries one connection to corrald, once it has asked for something. A connection that asks for nothing, or is
// refused, is closed: it would otherwise take a place for as long as its maker likes.
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
	// corrald answers within openTime; the rest is for the way there and back.
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

// listen opens the port of the relay before, or else another.
func listen(ctx context.Context, file string) (net.Listener, error) {
	host, _ := os.Hostname()
	var before place
	if b, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(b, &before) // a note that cannot be read counts as none
	}
	// The relay before this one may not know yet that its corrald is gone: ssh notices that late. Only on this host
	// does its process number mean anything; a site may have several head nodes.
	if before.Host == host {
		before.end()
	}
	var ln net.Listener
	var err error = syscall.EADDRINUSE
	if before.Port != 0 {
		ln, err = again(ctx, before.Port)
	}
	if errors.Is(err, syscall.EADDRINUSE) { // there was no port, or another program has it by now
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

// again opens the port of a relay that is about to leave it, and waits for that for at most takeOverTime.
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

// Ports of relays: above those of services, below those that Linux gives to outgoing connections, one of which could
// otherwise have it before the next relay does.
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

// end ends the process that wrote p. Its number may be another process's by now, which the arguments show.
func (p place) end() {
	args, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cmdline")
	if err != nil || p.PID == os.Getpid() || len(p.Args) == 0 {
		return
	}
	if bytes.Equal(args, []byte(strings.Join(p.Args, "\x00")+"\x00")) {
		_ = syscall.Kill(p.PID, syscall.SIGTERM) // fails if it has just ended by itself
	}
}

// write leaves p in file for the next relay.
func (p place) write(file string) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err // unreachable: p has only strings and numbers
	}
	if err := atomicfile.Replace(file, b, 0o600); err != nil {
		return fmt.Errorf("noting the relay's port: %w", err)
	}
	return nil
}

// inside returns the addresses at which nodes may reach ln: private ones first, since a head node has often a public
// one that its nodes cannot reach; loopback only where there is no other.
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

// rank orders addresses: private ones before public ones.
func rank(a netip.Addr) int {
	if a.IsPrivate() {
		return 0
	}
	return 1
}
