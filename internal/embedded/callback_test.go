package embedded_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/dispatch"
)

const testNonce = "0123456789abcdef"

// speaker returns the address of a listener that sends text to each connection.
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

// vacant returns an address on which no program listens while the test runs, because the test occupies it.
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
			corral.Failed, "another program answers there"},
		{"no address", func(*testing.T, string) []string { return nil }, corral.Invalid, "0 addresses"},
		{"too many", func(*testing.T, string) []string { return make([]string, 9) }, corral.Invalid, "9 addresses"},
		{"a name", func(*testing.T, string) []string { return []string{"localhost:2000"} }, corral.Invalid, "must not be dialled"},
		{"a port of the system's", func(*testing.T, string) []string { return []string{"127.0.0.1:22"} }, corral.Invalid, "must not be dialled"},
		{"everybody", func(*testing.T, string) []string { return []string{"224.0.0.1:2000"} }, corral.Invalid, "must not be dialled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, dispatch.Config{})
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

// If a pilot makes many simultaneous requests to be called back, only some of them are served in each interval.
func TestPilotIsNotCalledBackTooOften(t *testing.T) {
	t.Parallel()
	c := newCluster(t, dispatch.Config{})
	l, err := c.dialPilot(t, c.pilotConfig("one"))
	if err != nil {
		t.Fatal(err)
	}
	mine := []string{speaker(t, testNonce)}
	var calls sync.WaitGroup
	var reached, refused atomic.Int32
	for range 100 {
		calls.Go(func() {
			switch _, err := l.CallBack(context.Background(), mine, testNonce); corral.KindOf(err) {
			case "":
				reached.Add(1)
			case corral.Unavailable:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if reached.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d calls were made and %d refused, want some of both", reached.Load(), refused.Load())
	}
}
