package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
)

const tag, token = "corral-pilot-x", "secret"

// digest is the digest of the token.
const digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

// stdio is one end of a command's stdin and stdout.
type stdio struct {
	io.Reader
	io.WriteCloser
	close func()
}

func (s stdio) Close() error { s.close(); return nil }

// pipes returns both ends.
func pipes() (head, corrald io.ReadWriteCloser) {
	hr, cw := io.Pipe()
	cr, hw := io.Pipe()
	end := func() { hr.Close(); hw.Close(); cr.Close(); cw.Close() }
	return stdio{hr, hw, end}, stdio{cr, cw, end}
}

// A running relay.
type running struct {
	*Session
	lose func() // cuts the connection
	gone chan struct{}
}

func start(t testing.TB, file string, gate Gate) running {
	t.Helper()
	head, ours := pipes()
	ended := make(chan error, 1)
	go func() { ended <- Run(t.Context(), slog.New(slog.DiscardHandler), file, head) }()
	s, err := Open(t.Context(), ours)
	if err != nil {
		t.Fatal(err, <-ended)
	}
	r := running{Session: s, gone: make(chan struct{})}
	r.lose = sync.OnceFunc(func() {
		ours.Close()
		if err := <-ended; err != nil {
			t.Errorf("the relay ended: %v", err)
		}
		<-r.gone
	})
	go func() { s.Serve(t.Context(), gate); close(r.gone) }()
	t.Cleanup(r.lose)
	return r
}

// upperCase serves connections that receive their data back in capitals, once they have sent all of it.
func upperCase(t testing.TB) Gate {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				text, _ := io.ReadAll(nc)
				_, _ = nc.Write(bytes.ToUpper(text))
			}()
		}
	}()
	return func(ctx context.Context, r Request) (net.Conn, error) {
		if r.Tag != tag || !r.Proves(digest) {
			return nil, corral.Errorf(corral.Unauthenticated, "attempt %s is not known here", r.Tag)
		}
		if r.Target != Workers {
			return nil, corral.Errorf(corral.Unsatisfiable, "there is no pool")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	}
}

// talk sends text, closes its half, and returns the whole answer.
func talk(nc net.Conn, text string) (string, error) {
	defer nc.Close()
	if _, err := io.WriteString(nc, text); err != nil {
		return "", err
	}
	if err := closeWrite(nc); err != nil {
		return "", err
	}
	b, err := io.ReadAll(nc)
	return string(b), err
}

func TestRelay(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "relay"), upperCase(t))
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			nc, err := Dial(t.Context(), r.Addresses[0], NewRequest(Workers, tag, token))
			if err != nil {
				t.Error(err)
				return
			}
			text := strings.Repeat(fmt.Sprint("hello ", i, " "), 1<<14)
			if got, err := talk(nc, text); err != nil || got != strings.ToUpper(text) {
				t.Errorf("%d bytes came back, %v", len(got), err)
			}
		})
	}
	all.Wait()
}

// A worker without a token, or with another request, is told why no connection is opened.
func TestRelayRefuses(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "relay"), upperCase(t))
	for _, tt := range []struct {
		name string
		r    Request
		kind corral.Kind
		say  string
	}{
		{"another token", NewRequest(Workers, tag, "guessed"), corral.Unauthenticated, "not known"},
		{"another attempt", NewRequest(Workers, "other", token), corral.Unauthenticated, "not known"},
		{"a proof for another target", Request{Workers, tag, proofFor(digest, Pool, tag)}, corral.Unauthenticated, "not known"},
		{"no such target", NewRequest(Pool, tag, token), corral.Unsatisfiable, "no pool"},
		{"an address as target", Request{"10.0.0.1:22", tag, proofFor(digest, Workers, tag)}, corral.Invalid, "not a request"},
	} {
		nc, err := Dial(t.Context(), r.Addresses[0], tt.r)
		if nc != nil || corral.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%s: %v, want it %s: %s", tt.name, err, tt.kind, tt.say)
		}
	}
}

// impatient is a connection whose deadlines pass at once.
type impatient struct{ net.Conn }

func (c impatient) SetDeadline(time.Time) error { return c.Conn.SetDeadline(time.Now()) }

// A connection without a request uses no stream of corrald's, and is closed.
func TestSilentConnectionIsDropped(t *testing.T) {
	t.Parallel()
	head, _ := sessions(t)
	ours, theirs := net.Pipe()
	pass(head, impatient{theirs})
	if _, err := ours.Write([]byte("x")); err == nil || head.NumStreams() != 0 {
		t.Errorf("writing to it: %v, with %d streams open, want an error and none", err, head.NumStreams())
	}
}

// A refused connection releases its place at the relay, even if the client does not close it.
func TestRefusedConnectionIsClosed(t *testing.T) {
	t.Parallel()
	head, corrald := sessions(t)
	go serveOne(t, corrald, func(context.Context, Request) (net.Conn, error) {
		return nil, corral.Errorf(corral.Forbidden, "it is over")
	})
	worker, near := tubes(t)
	passed := make(chan struct{})
	go func() { pass(head, near); close(passed) }()
	_, _ = io.WriteString(worker, NewRequest(Workers, tag, token).encode())
	if err := readAnswer(worker); corral.KindOf(err) != corral.Forbidden {
		t.Errorf("the answer is %v, want it Forbidden", err)
	}
	<-passed
}

// A worker that vanishes during a transfer does not block the sender.
func TestSenderDetectsVanishedReader(t *testing.T) {
	t.Parallel()
	head, corrald := sessions(t)
	worker, near := tubes(t)
	pool, nearPool := connection(t)
	go pass(head, near)
	go serveOne(t, corrald, func(context.Context, Request) (net.Conn, error) { return nearPool, nil })
	_, _ = io.WriteString(worker, NewRequest(Workers, tag, token).encode())
	if err := readAnswer(worker); err != nil {
		t.Fatal(err)
	}
	worker.Session().Close()
	sent := make(chan error, 1)
	go func() {
		piece := make([]byte, 256<<10)
		for {
			if _, err := pool.Write(piece); err != nil {
				sent <- err
				return
			}
		}
	}()
	select {
	case <-sent:
	case <-time.After(3 * time.Minute):
		t.Error("minutes later it still sends")
	}
}

func serveOne(t *testing.T, corrald *yamux.Session, gate Gate) {
	st, err := corrald.AcceptStream()
	if err != nil {
		t.Error(err)
		return
	}
	serve(t.Context(), &tube{Stream: st}, gate)
}

// sessions returns the two ends of a connection that streams share.
func sessions(t *testing.T) (client, server *yamux.Session) {
	a, b := net.Pipe()
	client, err := yamux.Client(a, multiplexing())
	if err != nil {
		t.Fatal(err)
	}
	server, err = yamux.Server(b, multiplexing())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// connection returns the two ends of a TCP connection.
func connection(t *testing.T) (a, b net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// tubes returns the two ends of a connection that can be half-closed.
func tubes(t *testing.T) (a, b *tube) {
	client, server := sessions(t)
	opened := make(chan *yamux.Stream, 1)
	go func() {
		st, err := client.OpenStream()
		if err != nil {
			t.Error(err)
		}
		opened <- st
	}()
	st, err := server.AcceptStream()
	if err != nil {
		t.Fatal(err)
	}
	return &tube{Stream: <-opened}, &tube{Stream: st}
}

// If the link to corrald is lost, so are the connections; the next relay has the address of the earlier one.
func TestNextRelayHasTheSamePort(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "relay")
	first := start(t, file, upperCase(t))
	nc, err := Dial(t.Context(), first.Addresses[0], NewRequest(Workers, tag, token))
	if err != nil {
		t.Fatal(err)
	}
	first.lose()
	if _, err := io.ReadAll(nc); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection ended with %v", err)
	}
	if _, err := Dial(t.Context(), first.Addresses[0], NewRequest(Workers, tag, token)); err == nil {
		t.Error("a lost relay connects")
	}
	second := start(t, file, upperCase(t))
	if second.Addresses[0] != first.Addresses[0] {
		t.Errorf("the second relay is at %s, the first was at %s", second.Addresses, first.Addresses)
	}
}

// While no relay runs, outgoing connections of a busy head node do not get its port.
func TestPortAvoidsOutgoingRange(t *testing.T) {
	t.Parallel()
	for range 3 {
		ln, err := listen(t.Context(), filepath.Join(t.TempDir(), "relay"))
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		if port := ln.Addr().(*net.TCPAddr).Port; port < 20000 || port > 32767 {
			t.Errorf("the relay listens at port %d", port)
		}
	}
}

// A relay gives up a port that another program has taken meanwhile.
func TestRelayWhosePortIsTaken(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	host, _ := os.Hostname()
	file := filepath.Join(t.TempDir(), "relay")
	taken := other.Addr().(*net.TCPAddr).Port
	if err := (place{Host: host, Port: taken, PID: os.Getppid(), Args: []string{"another program"}}).write(file); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // without waiting
	ln, err := listen(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if got := ln.Addr().(*net.TCPAddr).Port; got == taken {
		t.Errorf("listens at %d, which is taken", got)
	}
}

// Several pilots of a user on one node represent the pool at the same address, and survive each other's end.
func TestForwardersShareAnAddress(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "relay"), upperCase(t))
	relays := []string{closedPort(t), r.Addresses[0]}
	at := netip.MustParseAddrPort(closedPort(t))
	lg := slog.New(slog.DiscardHandler)
	first, err := Forward(lg, at, relays, NewRequest(Workers, tag, token))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Forward(lg, at, relays, NewRequest(Workers, tag, token))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for i := range 20 {
		if i == 10 {
			first.Close()
		}
		nc, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := talk(nc, "hello"); err != nil || got != "HELLO" {
			t.Errorf("%q came back, %v", got, err)
		}
	}
}

func TestForwarderFindsItsAddressTaken(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = Forward(slog.New(slog.DiscardHandler), netip.MustParseAddrPort(other.Addr().String()), nil, Request{})
	if err == nil || !strings.Contains(err.Error(), "another program uses "+other.Addr().String()) {
		t.Errorf("Forward = %v", err)
	}
}

func TestOpenRefusesOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "bash: pilot: not found\n", `{"relay":2,"addresses":["10.0.0.1:1"]}` + "\n", `{"relay":1}` + "\n", `{"relay":1,"addresses":["host:1"]}` + "\n"} {
		head, ours := pipes()
		go func() {
			_, _ = io.WriteString(head, said)
			head.Close()
		}()
		if s, err := Open(t.Context(), ours); err == nil {
			t.Errorf("%q is taken for the relay %v", said, s.Addresses)
		}
	}
}

// closedPort is an address at which only forwarders can listen until the test ends, because a socket is bound to it.
func closedPort(t testing.TB) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", at.(*unix.SockaddrInet4).Port)
}

// Any program on the site's network may connect to the relay and send anything.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(NewRequest(Workers, tag, token).encode()))
	f.Add([]byte("corral-relay/1 pool a " + strings.Repeat("0", 64) + "\nmore"))
	f.Add(bytes.Repeat([]byte("x"), 2*maxLine))
	f.Fuzz(func(t *testing.T, in []byte) {
		rest := bytes.NewReader(in)
		r, err := readRequest(rest)
		if err != nil {
			return
		}
		line := r.encode()
		if !bytes.HasPrefix(in, []byte(line)) || rest.Len() != len(in)-len(line) {
			t.Errorf("%q was read as %q, and %d bytes are left", in, line, rest.Len())
		}
	})
}

// The answer also crosses the site's network, and must not prevent a worker from reporting the failure.
func FuzzAnswer(f *testing.F) {
	f.Add("ok\n")
	f.Add("no forbidden because\n")
	f.Add("no \n")
	f.Fuzz(func(t *testing.T, in string) {
		err := readAnswer(strings.NewReader(in))
		if (err == nil) != strings.HasPrefix(in, "ok\n") {
			t.Errorf("%q means %v", in, err)
		}
	})
}

// A refusal arrives with its kind, whatever its text is.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil, corral.Errorf(corral.Forbidden, "line\nline"), corral.Errorf(corral.Unauthenticated, "%s", strings.Repeat("long ", 1000)),
		fmt.Errorf("some defect"), context.DeadlineExceeded,
	} {
		got := readAnswer(strings.NewReader(answer(err)))
		if (got == nil) != (err == nil) || corral.KindOf(err) == corral.Forbidden && (corral.KindOf(got) != corral.Forbidden || got.Error() != "line line") {
			t.Errorf("%v arrives as %v", err, got)
		}
	}
}

func BenchmarkRelay(b *testing.B) {
	r := start(b, filepath.Join(b.TempDir(), "relay"), upperCase(b))
	b.Run("a connection and an answer", func(b *testing.B) {
		for range b.N {
			nc, err := Dial(b.Context(), r.Addresses[0], NewRequest(Workers, tag, token))
			if err == nil {
				_, err = talk(nc, "x")
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
