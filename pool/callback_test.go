package pool

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

const testNonce = "0123456789abcdef"

// speaker returns the address of a listener that says text to whoever connects.
func speaker(t *testing.T, text string) string {
	t.Helper()
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
			_, _ = io.WriteString(nc, text)
			nc.Close()
		}
	}()
	return ln.Addr().String()
}

// vacant returns an address where nobody listens, nor will while the test goes on: it is taken.
func vacant(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
}

func TestPilotIsCalledBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		addresses func(t *testing.T, mine string) []string
		kind      corral.Kind
		want      string // in the error
	}{
		{"only address", func(_ *testing.T, mine string) []string { return []string{mine} }, "", ""},
		{"one of three", func(t *testing.T, mine string) []string {
			return []string{vacant(t), speaker(t, "SSH-2.0-x\r\n and more"), mine}
		}, "", ""},
		{"nobody listens", func(t *testing.T, _ string) []string { return []string{vacant(t)} }, corral.Failed, "connection refused"},
		{"somebody else's listener", func(t *testing.T, _ string) []string { return []string{speaker(t, "fedcba9876543210")} },
			corral.Failed, "somebody else answers there"},
		{"no address", func(*testing.T, string) []string { return nil }, corral.Invalid, "0 addresses"},
		{"too many", func(*testing.T, string) []string { return make([]string, 9) }, corral.Invalid, "9 addresses"},
		{"a name", func(*testing.T, string) []string { return []string{"localhost:2000"} }, corral.Invalid, "not to be dialled"},
		{"a port of the system's", func(*testing.T, string) []string { return []string{"127.0.0.1:22"} }, corral.Invalid, "not to be dialled"},
		{"everybody", func(*testing.T, string) []string { return []string{"224.0.0.1:2000"} }, corral.Invalid, "not to be dialled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, Config{})
			l, err := c.dialPilot(t, c.pilotConfig("one"))
			if err != nil {
				t.Fatal(err)
			}
			mine := speaker(t, testNonce+"\n")
			got, err := l.CallBack(context.Background(), tt.addresses(t, mine), testNonce)
			if tt.kind == "" && (got != mine || err != nil) {
				t.Errorf("CallBack() = %q, %v; want %s", got, err, mine)
			}
			if corral.KindOf(err) != tt.kind || tt.kind != "" && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("CallBack() = %v, want %s with %q", err, tt.kind, tt.want)
			}
		})
	}
}

func TestPilotIsNotCalledBackAgainAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, Config{})
	l, err := c.dialPilot(t, c.pilotConfig("one"))
	if err != nil {
		t.Fatal(err)
	}
	mine := []string{speaker(t, testNonce)}
	if _, err := l.CallBack(context.Background(), mine, testNonce); err != nil {
		t.Fatal(err)
	}
	c.port.calls.admit(1, 1, time.Now().Add(time.Minute)) // "at once" may be late by more than an interval
	if _, err := l.CallBack(context.Background(), mine, testNonce); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("a second call at once: %v, want it refused for now", err)
	}
}

func TestCallsOfAnAttemptAreAnIntervalApart(t *testing.T) {
	calls := newCallBacks()
	start := time.Now()
	for _, tt := range []struct {
		attempt corral.JobID
		hosts   int
		after   time.Duration
		want    bool
	}{
		{1, 1, 0, true}, {1, 1, callInterval - 1, false}, {2, 1, callInterval - 1, true}, {1, 1, callInterval, true}, {1, 1, callInterval + 1, false},
		// All hosts of an attempt ask when it starts; and then they have an interval together.
		{3, 3, 0, true}, {3, 3, 0, true}, {3, 3, 1, true}, {3, 3, 2, false}, {3, 3, callInterval, true}, {3, 3, callInterval + 1, false},
		{3, 3, time.Minute, true}, {3, 3, time.Minute, true}, {3, 3, time.Minute, true}, {3, 3, time.Minute, false},
	} {
		if got := calls.admit(tt.attempt, tt.hosts, start.Add(tt.after)); got != tt.want {
			t.Errorf("attempt %d of %d hosts after %v: admitted %v, want %v", tt.attempt, tt.hosts, tt.after, got, tt.want)
		}
	}
	calls.admit(4, 1, start.Add(time.Hour))
	if len(calls.used) != 1 {
		t.Errorf("%d attempts are remembered, want the last one", len(calls.used))
	}
}

// A pilot elsewhere has no business with this machine's own loopback addresses.
func TestRemotePilotNamesNoLoopbackAddress(t *testing.T) {
	t.Parallel()
	p := NewPort(testLog(t), nil)
	here, there := net.Pipe()
	t.Cleanup(func() { there.Close() })
	s := &session{conn: newConn(remote{here}), attempt: 1, hosts: 1}
	t.Cleanup(s.close)
	for _, address := range []string{"127.0.0.1:2000", "[::1]:2000", "[::ffff:127.0.0.1]:2000"} {
		_, err := p.call(context.Background(), s, &message{Addresses: []string{"198.51.100.1:2000", address}, Nonce: testNonce})
		if corral.KindOf(err) != corral.Forbidden {
			t.Errorf("%s: %v, want it forbidden", address, err)
		}
	}
}

// remote is a connection that comes from another machine.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }
