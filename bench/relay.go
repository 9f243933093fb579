package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corral-pilot/corral/broker/relay"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

const (
	relayBytes   = 256 << 20 // in each measurement of throughput
	relayPieces  = 64 << 10
	relayMessage = 64 // bytes of a message that goes there and back
	relayTrips   = 2000
	relayDials   = 300
)

// A way connects with the server of who measures.
type way func(context.Context) (net.Conn, error)

// measureRelay compares connections through a relay, behind a real sshd on this machine, with connections to the same
// server without one.
func (p plan) measureRelay(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	go answerAll(server)
	direct := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Addr().String())
	}
	conn, end, err := openSSHD(dir, stderr)
	if err != nil {
		return err
	}
	defer end()
	bin, err := filepath.Abs(p.bin)
	if err != nil {
		return err
	}
	argv := []string{filepath.Join(bin, "pilot"), "relay", "--root", dir}
	stdio, err := conn.Stream(ctx, gridsite.Command{Argv: argv})
	if err != nil {
		return err
	}
	defer stdio.Close()
	s, err := relay.Open(ctx, stdio)
	if err != nil {
		return errors.Join(err, stdio.Wait())
	}
	go s.Serve(ctx, func(ctx context.Context, _ relay.Request) (net.Conn, error) { return direct(ctx) })
	through := func(ctx context.Context) (net.Conn, error) {
		return relay.Dial(ctx, s.Addresses[0], relay.NewRequest(relay.Workers, "bench", "bench"))
	}
	return p.compareWays(ctx, direct, through, stdout)
}

// answerAll serves connections: the first byte says what with.
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
			case 't': // take, and say when all is there
				_, _ = io.CopyN(io.Discard, nc, relayBytes)
				_, _ = nc.Write(what)
			case 'g': // give
				_, _ = io.CopyN(nc, zeros{}, relayBytes)
			}
		}()
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (p plan) compareWays(ctx context.Context, direct, through way, stdout io.Writer) error {
	rows := [][]string{{"", "without relay", "through relay and ssh"}}
	for _, m := range []struct {
		name    string
		measure func(context.Context, way) (string, error)
	}{
		{"a connection and its first answer, median of 300", firstAnswer},
		{"a message of 64 bytes there and back, median of 2,000", roundTrip},
		{"from a node to corrald, one connection", flow('t', 1)},
		{"from corrald to a node, one connection", flow('g', 1)},
		{"from nodes to corrald, eight connections together", flow('t', 8)},
	} {
		row := []string{m.name}
		for _, w := range []way{direct, through} {
			got, err := m.measure(ctx, w)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			row = append(row, got)
		}
		rows = append(rows, row)
	}
	var text strings.Builder
	table(&text, rows)
	return p.publish(text.String(), stdout)
}

func firstAnswer(ctx context.Context, w way) (string, error) {
	var took []time.Duration
	for range relayDials {
		began := time.Now()
		nc, err := w(ctx)
		if err != nil {
			return "", err
		}
		err = exchange(nc, []byte("ex"), make([]byte, 1))
		took = append(took, time.Since(began))
		nc.Close()
		if err != nil {
			return "", err
		}
	}
	return median(took), nil
}

func roundTrip(ctx context.Context, w way) (string, error) {
	nc, err := w(ctx)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("e")); err != nil {
		return "", err
	}
	var took []time.Duration
	message := make([]byte, relayMessage)
	for range relayTrips {
		began := time.Now()
		if err := exchange(nc, message, message); err != nil {
			return "", err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}

// exchange sends one thing and reads another.
func exchange(nc net.Conn, send, receive []byte) error {
	if _, err := nc.Write(send); err != nil {
		return err
	}
	_, err := io.ReadFull(nc, receive)
	return err
}

func median(took []time.Duration) string {
	slices.Sort(took)
	return fmt.Sprintf("%.2f ms", float64(took[len(took)/2].Microseconds())/1000)
}

// flow measures how much goes through n connections at once.
func flow(what byte, n int) func(context.Context, way) (string, error) {
	return func(ctx context.Context, w way) (string, error) {
		var all sync.WaitGroup
		errs := make([]error, n)
		began := time.Now()
		for i := range n {
			all.Go(func() { errs[i] = pour(ctx, w, what) })
		}
		all.Wait()
		return fmt.Sprintf("%.0f MB/s", float64(n)*relayBytes/1e6/time.Since(began).Seconds()), errors.Join(errs...)
	}
}

func pour(ctx context.Context, w way, what byte) error {
	nc, err := w(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := nc.Write([]byte{what}); err != nil {
		return err
	}
	if what == 'g' {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, nc, make([]byte, relayPieces))
		if err == nil && n != relayBytes {
			err = fmt.Errorf("%d bytes arrived", n)
		}
		return err
	}
	if _, err := io.CopyBuffer(nc, io.LimitReader(zeros{}, relayBytes), make([]byte, relayPieces)); err != nil {
		return err
	}
	_, err = io.ReadFull(nc, make([]byte, 1))
	return err
}

// openSSHD starts scripts/sshd and returns a connection with it, and what ends both.
func openSSHD(dir string, stderr io.Writer) (conn *ssh.Conn, end func(), err error) {
	tools, err := exec.Command("scripts/sshd", "--fetch").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("fetching sshd (bench runs in the project's folder): %w", err)
	}
	keys := filepath.Join(dir, ".ssh")
	if err := os.Mkdir(keys, 0o700); err != nil {
		return nil, nil, err
	}
	for _, key := range []string{filepath.Join(keys, "id_ed25519"), filepath.Join(dir, "hostkey")} {
		if err := exec.Command(strings.TrimSpace(string(tools))+"/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run(); err != nil {
			return nil, nil, fmt.Errorf("making a key: %w", err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	mine, err := os.ReadFile(filepath.Join(keys, "id_ed25519.pub"))
	host, hostErr := os.ReadFile(filepath.Join(dir, "hostkey.pub"))
	if err := errors.Join(err, hostErr, os.WriteFile(filepath.Join(dir, "authorized_keys"), mine, 0o600),
		os.WriteFile(filepath.Join(keys, "known_hosts"), fmt.Appendf(nil, "[127.0.0.1]:%s %s", port, host), 0o600)); err != nil {
		return nil, nil, err
	}
	sshd := exec.Command("scripts/sshd", dir, port, "LogLevel ERROR")
	sshd.Stdout, sshd.Stderr = stderr, stderr
	if err := sshd.Start(); err != nil {
		return nil, nil, err
	}
	stop := func() { _ = sshd.Process.Kill(); _ = sshd.Wait() }
	if conn, err = ssh.New("ssh://"+address, ssh.Options{Home: dir}); err == nil {
		err = connectSoon(conn)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return conn, func() { conn.Close(); stop() }, nil
}

// connectSoon waits for the server to listen.
func connectSoon(conn *ssh.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := conn.Connect(ctx, false)
		if err == nil || ctx.Err() != nil {
			return err
		}
		<-tick.C
	}
}
