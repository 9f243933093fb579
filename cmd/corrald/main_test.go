package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/xdg"
)

// This and the next test do not run in parallel: package cli has global flags that every run writes.
func TestUsage(t *testing.T) {
	pilot := filepath.Join(t.TempDir(), "pilot")
	if err := os.WriteFile(pilot, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(short(t), "precious")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	everybodys := short(t)
	if err := os.Chmod(everybodys, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"an argument", []string{"serve"}, 2, `"serve"`},
		{"a relative directory", []string{"--state", "x"}, 2, "--state"},
		{"a flag twice", []string{"--log-level", "info", "--lease=1m", "--log-level=warn"}, 2, "corrald: --log-level may be given only once; see `corrald --help`"},
		{"a switch twice", []string{"--check-config", "--check-config"}, 2, "--check-config may be given only once"},
		{"a flag of a command twice", []string{"admin", "backup", "--state", "/a", "--state", "/b"}, 2, "--state may be given only once"},
		{"a long socket", []string{"--socket", "/" + strings.Repeat("x", xdg.MaxSocketPath)}, 2, "--socket"},
		{"no port", []string{"--worker-listen", "here"}, 2, "--worker-listen"},
		{"no port for metrics", []string{"--metrics-listen", "here"}, 2, "--metrics-listen"},
		{"a URL for an address", []string{"--advertise", "http://login.example/"}, 2, "--advertise"},
		{"no host", []string{"--advertise", ":7000"}, 2, "--advertise"},
		{"a host with a space", []string{"--advertise", "a b:7000"}, 2, "--advertise"},
		{"a port beyond all", []string{"--mirror-advertise", "login.example:70000"}, 2, "--mirror-advertise"},
		{"no address", []string{"--pool-address", "0.0.0.0"}, 2, "--pool-address"},
		{"a short lease", []string{"--lease", "10ms"}, 2, "--lease"},
		{"a short lease of jobs", []string{"--job-lease", "10s"}, 2, "--job-lease"},
		{"less than no cpus", []string{"--machine-cpus", "-1"}, 2, "--machine-cpus"},
		{"TLS without a certificate", []string{"--tls-listen", ":8443"}, 2, "--tls-listen: needs --tls-cert and --tls-key"},
		{"a certificate for nothing", []string{"--tls-cert", "/c", "--tls-key", "/k"}, 2, "--tls-listen"},
		{"TLS nowhere", []string{"--tls-listen", "8443", "--tls-cert", "/c", "--tls-key", "/k"}, 2, "--tls-listen"},
		{"a relative key", []string{"--tls-listen", ":8443", "--tls-cert", "/c", "--tls-key", "k"}, 2, "--tls-key"},
		{"a relative audit log", []string{"--audit-log", "x"}, 2, "--audit-log"},
		{"a negative rate", []string{"--rate", "-1"}, 2, "--rate"},
		{"no rate", []string{"--rate", "NaN"}, 2, "--rate"},
		{"no burst", []string{"--burst", "0"}, 2, "--burst"},
		{"a negative body", []string{"--max-body", "-1"}, 2, "--max-body"},
		{"a certificate that is not there", []string{"--pilot", pilot, "--check-config", "--tls-listen", ":8443", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, 2, "--tls-cert"},
		{"a loud log", []string{"--log-level", "loud"}, 2, "--log-level"},
		{"no pilot", []string{"--pilot", "/nowhere/pilot"}, 2, "make build"},
		{"a socket in everybody's directory", []string{"--pilot", pilot, "--socket", everybodys + "/x"}, 5, "corrald: --socket: " + everybodys + " has mode 1777, "},
		{"another one", []string{"--pilot", pilot, "--worker-socket", everybodys + "/x"}, 5, "(XDG_RUNTIME_DIR, or --socket and --worker-socket)"},
		{"a socket that is a file", []string{"--pilot", pilot, "--socket", file}, 1, "not a socket"},
	} {
		var stderr bytes.Buffer
		code := execute(context.Background(), append(withoutFlags(arguments(xdg.Below(short(t))), tt.args), tt.args...), &bytes.Buffer{}, &stderr)
		if code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("%s: exit code %d, says %q; want %d and %q", tt.name, code, stderr.String(), tt.code, tt.says)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "data" {
		t.Errorf("the file in the socket's place holds %q (%v)", b, err)
	}
}

// withoutFlags removes the flags, and their values, that are among other arguments.
func withoutFlags(from, others []string) (all []string) {
	all = append(all, from[0])
	for i := 1; i < len(from); i += 2 {
		if !slices.Contains(others, from[i]) {
			all = append(all, from[i], from[i+1])
		}
	}
	return all
}

func arguments(l xdg.Layout) []string {
	return []string{"corrald", "--state", l.State, "--cache", l.Cache, "--data", l.Data, "--socket", l.Socket, "--worker-socket", l.Worker}
}

// This test runs corrald from start to end: no other user can open the socket or read corrald's files, a waiting
// request does not delay the shutdown, and the sockets and the pid file are removed.
func TestLife(t *testing.T) {
	l := xdg.Below(short(t))
	pilot := filepath.Join(t.TempDir(), "pilot")
	if err := os.WriteFile(pilot, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- execute(ctx, append(arguments(l), "--pilot", pilot), &bytes.Buffer{}, &stderr) }()
	cl, err := api.New("unix:" + l.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ready := func() bool {
		_, unwell := cl.Health(ctx)
		_, closed := os.Stat(l.Worker)
		return unwell == nil && closed == nil
	}
	for deadline := time.Now().Add(2 * time.Minute); !ready(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it is not ready within 30 s")
		}
	}
	for _, path := range []string{l.Socket, l.Worker, l.Database(), l.Key(), l.PID()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s, want 0600", path, info.Mode())
		}
	}
	cancel()
	select {
	case code := <-done:
		if code != 0 {
			t.Errorf("exit code %d:\n%s", code, stderr.String())
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it has not ended within 30 s")
	}
	for _, path := range []string{l.Socket, l.Worker, l.PID()} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", path, err)
		}
	}
}
