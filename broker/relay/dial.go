package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
)

// Dial asks the relay at address, HOST:PORT, for the connection requested by r. If corrald answered, the error has the
// kind and the text of its answer; it is Unavailable if a retry may help.
func Dial(ctx context.Context, address string, r Request) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	if _, err = io.WriteString(nc, r.encode()); err == nil {
		err = readAnswer(nc)
	}
	// If ctx ended at the last moment, the connection is being closed, whatever the answer was.
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// A Forwarder is a proxy on a worker node for the target of a relay: programs on the node connect to its address, and
// each connection goes through the relay.
type Forwarder struct {
	lg     *slog.Logger
	ln     net.Listener
	relays []string
	r      Request
	open   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex // guards last
	last int        // index of the relay that answered last
}

// Forward listens at `at` and forwards each connection to one of relays with the request r. Other forwarders of this
// user on this node may use the same address: the kernel distributes the connections among them.
func Forward(lg *slog.Logger, at netip.AddrPort, relays []string, r Request) (*Forwarder, error) {
	lc := net.ListenConfig{Control: shareable}
	ln, err := lc.Listen(context.Background(), "tcp", at.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, corral.Errorf(corral.Failed,
			"another program uses %s on this node, where HTCondor expects its pool", at)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for this node's HTCondor: %w", err)
	}
	// The context ends all dials and connections when the forwarder is closed.
	f := &Forwarder{lg: lg, ln: ln, relays: relays, r: r}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.open.Go(f.accept)
	return f, nil
}

// shareable lets several forwarders listen at one address: each pilot on a node has its own, and all lead to the pool.
func shareable(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, failed)
}

// Close closes the forwarder and its connections, and returns when none is left.
func (f *Forwarder) Close() {
	f.cancel()
	f.ln.Close()
	f.open.Wait()
}

// accept forwards connections until the listener is closed.
func (f *Forwarder) accept() {
	for {
		nc, err := f.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // temporary: this process has too many open files
			time.Sleep(100 * time.Millisecond)
			continue
		}
		f.open.Go(func() { f.pass(nc) })
	}
}

// pass connects one program of the node through the relay. If the relay refuses, it closes the program's connection.
func (f *Forwarder) pass(nc net.Conn) {
	defer nc.Close()
	to, err := f.dial()
	if err != nil {
		if f.ctx.Err() == nil {
			f.lg.Warn("the relay made no connection", "error", err)
		}
		return
	}
	// A copy that waits for bytes ends only when its connection is closed.
	stop := context.AfterFunc(f.ctx, func() { nc.Close(); to.Close() })
	defer stop()
	join(nc, to)
}

// dial tries the addresses of the relay, beginning with the one that answered last: a head node has addresses that its
// nodes cannot reach, and waiting for those once is enough.
func (f *Forwarder) dial() (net.Conn, error) {
	f.mu.Lock()
	first := f.last
	f.mu.Unlock()
	var all []error
	for i := range f.relays {
		n := (first + i) % len(f.relays)
		nc, err := Dial(f.ctx, f.relays[n], f.r)
		if err == nil {
			f.mu.Lock()
			f.last = n
			f.mu.Unlock()
			return nc, nil
		}
		all = append(all, fmt.Errorf("%s: %w", f.relays[n], err))
	}
	return nil, errors.Join(all...)
}
