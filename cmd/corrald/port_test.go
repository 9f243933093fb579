package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/embedded/port"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// closed is a gate that admits no worker.
type closed struct{ port.Gate }

// portIn returns a worker port with its files below dir, and serves it until the test ends or stop is called.
func portIn(t *testing.T, dir, listen string) (w *workerPort, stop func()) {
	t.Helper()
	s := settings{layout: xdg.Below(dir), worker: endpoint{listen: listen}}
	if err := os.MkdirAll(filepath.Dir(s.layout.Worker), 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := newWorkerPort(slog.New(slog.DiscardHandler), closed{}, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.serve(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return w, stop
}

func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c") // short, because it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func wayIn(t *testing.T, w *workerPort, site string) (address, digest string) {
	t.Helper()
	addresses, digest, err := w.For(corral.Site{Name: site})
	if err != nil || len(addresses) != 1 {
		t.Fatalf("For(%s) = %v, %v, want one address", site, addresses, err)
	}
	return addresses[0], digest
}

// untilKept repeats a scenario in which a port is free for a moment, until no other program takes the port in that
// moment.
func untilKept(t *testing.T, scenario func(dir string) (taken bool)) {
	t.Helper()
	for scenario(short(t)) {
		t.Log("another program took the port: once more")
	}
}

// wayBack is wayIn for a port that was open before; taken reports whether another program has opened the port since.
func wayBack(t *testing.T, w *workerPort, site string) (address, digest string, taken bool) {
	t.Helper()
	if _, _, err := w.For(corral.Site{Name: site}); errors.Is(err, syscall.EADDRINUSE) {
		return "", "", true
	}
	address, digest = wayIn(t, w, site)
	return address, digest, false
}

// The orders of queued pilots name the port and its certificate, so both outlive corrald. This machine needs neither.
func TestWorkerPortKeepsItsAddress(t *testing.T) {
	t.Parallel()
	untilKept(t, func(dir string) bool {
		w, stop := portIn(t, dir, "127.0.0.1:0")
		if address, digest := wayIn(t, w, personal.Site); address != "unix:"+xdg.Below(dir).Worker || digest != "" {
			t.Errorf("the way in from this machine: %s, certificate %q", address, digest)
		}
		if w.address != "" {
			t.Errorf("the TLS port is open at %s, and no site needs it", w.address)
		}
		address, digest := wayIn(t, w, "cluster")
		stop()
		w, stop = portIn(t, dir, "127.0.0.1:0")
		defer stop()
		a, d, taken := wayBack(t, w, "cluster")
		if !taken && (a != address || d != digest) {
			t.Errorf("after a restart: %s %s, was %s %s", a, d, address, digest)
		}
		return taken
	})
}

// Without --worker-listen the port listens on this machine's address on the route to the first site that needs the
// port. It keeps this address unless the machine has moved.
func TestWorkerPortChoosesItsAddress(t *testing.T) {
	t.Parallel()
	choose := func(w *workerPort, ip string) {
		w.local = func(corral.Site) netip.Addr { return netip.MustParseAddr(ip) }
	}
	untilKept(t, func(dir string) bool {
		w, stop := portIn(t, dir, "")
		choose(w, "127.0.0.2")
		address, _ := wayIn(t, w, "cluster")
		if !strings.HasPrefix(address, "tls:127.0.0.2:") {
			t.Errorf("the way in is %s", address)
		}
		stop()
		w, stop = portIn(t, dir, "")
		choose(w, "127.0.0.3")
		a, _, taken := wayBack(t, w, "other")
		if !taken && a != address {
			t.Errorf("after a restart: %s, was %s", a, address)
		}
		stop()
		moved := strings.Replace(strings.TrimPrefix(address, "tls:"), "127.0.0.2", "192.0.2.1", 1)
		if err := os.WriteFile(w.addressFile(), []byte(moved+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := newWorkerPort(slog.New(slog.DiscardHandler), closed{}, settings{layout: xdg.Below(dir)})
		if err != nil {
			t.Fatal(err)
		}
		choose(w, "127.0.0.3")
		a, _, takenToo := wayBack(t, w, "cluster")
		if takenToo {
			return true
		}
		if a != strings.Replace(address, "127.0.0.2", "127.0.0.3", 1) {
			t.Errorf("on a machine that has moved: %s, was %s", a, address)
		}
		if err := (<-w.opened).Close(); err != nil {
			t.Error(err)
		}
		return taken
	})
}

// If the port listens on all addresses, each site receives this machine's address on the route to that site, because
// the wildcard address cannot be dialled.
func TestWorkerPortOnAllAddresses(t *testing.T) {
	t.Parallel()
	for _, all := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		w, _ := portIn(t, short(t), all)
		w.local = func(site corral.Site) netip.Addr {
			return netip.MustParseAddr(map[string]string{"near": "127.0.0.2", "far": "2001:db8::7"}[site.Name])
		}
		near, _ := wayIn(t, w, "near")
		far, _ := wayIn(t, w, "far")
		if !strings.HasPrefix(near, "tls:127.0.0.2:") || !strings.HasPrefix(far, "tls:[2001:db8::7]:") {
			t.Errorf("listening on %s, the ways in are %s and %s", all, near, far)
		}
	}
}

func TestAdvertised(t *testing.T) {
	t.Parallel()
	bound := &net.TCPAddr{IP: net.IPv4zero, Port: 7000}
	for advertise, want := range map[string]string{
		"": "0.0.0.0:7000", "login.example": "login.example:7000", "login.example:8": "login.example:8", "2001:db8::7": "[2001:db8::7]:7000",
	} {
		if got := advertised(advertise, bound); got != want {
			t.Errorf("advertised(%q) = %q, want %q", advertise, got, want)
		}
		if err := checkAdvertised("--advertise", advertise); err != nil {
			t.Error(err)
		}
	}
}

// While another program uses the port, sites that need it wait, but corrald itself serves requests.
func TestWorkerPortTaken(t *testing.T) {
	t.Parallel()
	untilKept(t, func(dir string) bool {
		w, stop := portIn(t, dir, "127.0.0.1:0")
		address, _ := wayIn(t, w, "cluster")
		stop()
		thief, err := net.Listen("tcp", address[len("tls:"):])
		if errors.Is(err, syscall.EADDRINUSE) {
			return true
		} else if err != nil {
			t.Fatal(err)
		}
		w, stop = portIn(t, dir, "127.0.0.1:0")
		defer stop()
		if a, _, err := w.For(corral.Site{Name: "cluster"}); corral.KindOf(err) != corral.Failed {
			t.Errorf("the way in is %s (%v), and somebody else listens there", a, err)
		}
		wayIn(t, w, personal.Site)
		thief.Close()
		a, _, taken := wayBack(t, w, "cluster")
		if !taken && a != address {
			t.Errorf("the way in is %s, was %s", a, address)
		}
		return taken
	})
}

func TestAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ flag, before, want string }{
		{"127.0.0.1:0", "127.0.0.1:4711", "127.0.0.1:4711"},
		{":0", "127.0.0.1:4711", ":4711"},
		{"127.0.0.1:9618", "127.0.0.1:4711", "127.0.0.1:9618"},
		{"127.0.0.1:0", "", "127.0.0.1:0"},
		{"", "10.0.0.7:4711", "10.0.0.7:4711"},
	} {
		if got := again(tt.flag, tt.before); got != tt.want {
			t.Errorf("again(%q, %q) = %q, want %q", tt.flag, tt.before, got, tt.want)
		}
	}
}
