package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
	"github.com/corral-pilot/corral/internal/kit/programs"
)

const (
	relayBytes   = 64 << 20 // sent through each connection whose throughput is measured
	relayMessage = 64       // bytes of a message in a round trip
)

// A way connects to the benchmark's server.
type way func(context.Context) (net.Conn, error)

// BenchmarkRelay compares connections through a relay, behind a real sshd on this machine, with connections to the
// same server without a relay.
func BenchmarkRelay(b *testing.B) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	go answerAll(server)
	direct := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Addr().String())
	}
	through := throughRelay(b, direct)
	for _, w := range []struct {
		name string
		dial way
	}{{"direct", direct}, {"relay", through}} {
		b.Run("FirstAnswer/"+w.name, func(b *testing.B) { benchmarkFirstAnswer(b, w.dial) })
		b.Run("RoundTrip/"+w.name, func(b *testing.B) { benchmarkRoundTrip(b, w.dial) })
		b.Run("ToCorrald/"+w.name, func(b *testing.B) { benchmarkFlow(b, w.dial, 't', 1) })
		b.Run("FromCorrald/"+w.name, func(b *testing.B) { benchmarkFlow(b, w.dial, 'g', 1) })
		b.Run("EightToCorrald/"+w.name, func(b *testing.B) { benchmarkFlow(b, w.dial, 't', 8) })
	}
}

// throughRelay starts `pilot relay` in a session of an sshd, and returns the way through it.
func throughRelay(b *testing.B, direct way) way {
	bin, err := programs.Plain()
	if err != nil {
		b.Fatal(err)
	}
	sshd := gridsitetest.StartSSHD(b)
	conn, err := ssh.New(sshd.Contact(), ssh.Options{Home: sshd.Home})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	argv := []string{filepath.Join(bin, "pilot"), "relay", "--root", b.TempDir()}
	stdio, err := conn.Stream(b.Context(), gridsite.Command{Argv: argv})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stdio.Close() })
	s, err := relay.Open(b.Context(), stdio)
	if err != nil {
		b.Fatal(errors.Join(err, stdio.Wait()))
	}
	go s.Serve(b.Context(), func(ctx context.Context, _ relay.Request) (net.Conn, error) { return direct(ctx) })
	return func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, s.Addresses[0], relay.NewRequest(relay.Workers, "bench", "bench"))
	}
}

// answerAll serves connections: the first byte names the service.
func answerAll(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer nc.Close()
			what := make([]byte, 1)
			if _, err := io.ReadFull(nc, what); err != nil {
				return
			}
			switch what[0] {
			case 'e': // echo
				_, _ = io.Copy(nc, nc)
			case 't': // take, and answer when all bytes have arrived
				_, _ = io.CopyN(io.Discard, nc, relayBytes)
				_, _ = nc.Write(what)
			case 'g': // send
				_, _ = io.CopyN(nc, zeros{}, relayBytes)
			}
		}()
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// benchmarkFirstAnswer makes a connection and waits for the first byte of the answer.
func benchmarkFirstAnswer(b *testing.B, dial way) {
	for b.Loop() {
		nc, err := dial(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		err = exchange(nc, []byte("ex"), make([]byte, 1))
		nc.Close()
		if err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkRoundTrip sends a message back and forth over one connection.
func benchmarkRoundTrip(b *testing.B, dial way) {
	nc, err := dial(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("e")); err != nil {
		b.Fatal(err)
	}
	message := make([]byte, relayMessage)
	for b.Loop() {
		if err := exchange(nc, message, message); err != nil {
			b.Fatal(err)
		}
	}
}

// exchange sends one message and reads another.
func exchange(nc net.Conn, send, receive []byte) error {
	if _, err := nc.Write(send); err != nil {
		return err
	}
	_, err := io.ReadFull(nc, receive)
	return err
}

// benchmarkFlow measures the throughput of n parallel connections; what is t for traffic to corrald, g for traffic from
// it.
func benchmarkFlow(b *testing.B, dial way, what byte, n int) {
	b.SetBytes(int64(n) * relayBytes)
	for b.Loop() {
		var all sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			all.Go(func() { errs[i] = pour(b.Context(), dial, what) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			b.Fatal(err)
		}
	}
}

// pour sends relayBytes through a new connection, or receives them.
func pour(ctx context.Context, dial way, what byte) error {
	nc, err := dial(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := nc.Write([]byte{what}); err != nil {
		return err
	}
	if what == 'g' {
		n, err := io.Copy(struct{ io.Writer }{io.Discard}, nc) // in larger pieces than io.Discard reads
		if err == nil && n != relayBytes {
			err = fmt.Errorf("%d bytes arrived", n)
		}
		return err
	}
	if _, err := io.CopyN(nc, zeros{}, relayBytes); err != nil {
		return err
	}
	_, err = io.ReadFull(nc, make([]byte, 1))
	return err
}
