package main

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/store"
)

// A bad is an invalid value of a setting, together with the other settings that it requires.
type bad struct {
	value string
	with  []string
	code  int
	says  string // the error after the name of the flag
}

// badValues returns at least one invalid value for each setting.
func badValues(t *testing.T) map[string][]bad {
	t.Helper()
	dir := short(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	taken := busy.Addr().String()
	tls := []string{"--tls-cert", "/nowhere/c", "--tls-key", "/nowhere/k"}
	all := map[string][]bad{
		"state": {{"x", nil, 2, "not an absolute path"}, {"/proc/foo", nil, 2, "/proc/foo cannot be created"},
			{file + "/below", nil, 2, file + " is not a directory"}},
		"cache":         {{"/proc/foo", nil, 2, "/proc/foo cannot be created"}},
		"data":          {{"/sys/foo", nil, 2, "/sys/foo cannot be created"}},
		"socket":        {{"/proc/foo/a.sock", nil, 2, "/proc/foo cannot be created"}, {"a.sock", nil, 2, "not an absolute path"}},
		"worker-socket": {{"/proc/foo/a.sock", nil, 2, "/proc/foo cannot be created"}, {file, nil, 1, "not a socket"}},
		"worker-listen": {{":99999", nil, 2, "port from 0 to 65535"}, {"here", nil, 2, "not HOST:PORT"}},
		"metrics-listen": {{":99999", nil, 2, "port from 0 to 65535"}, {taken, nil, 1, taken + " is taken by another program"},
			{"192.0.2.1:0", nil, 2, "192.0.2.1 is not an address of this machine"}},
		"mirror-listen": {{"127.0.0.1:99999", nil, 2, "port from 0 to 65535"}, {taken, nil, 1, taken + " is taken"},
			{"127.0.0.1:nonesuch", nil, 2, "port from 0 to 65535"}},
		"tls-listen": {{":99999", tls, 2, "port from 0 to 65535"}, {":0", nil, 2, "needs --tls-cert and --tls-key"}},
		"tls-cert":   {{"/nowhere", []string{"--tls-listen", "127.0.0.1:0", "--tls-key", file}, 2, "/nowhere"}},
		"tls-key":    {{"k", []string{"--tls-listen", "127.0.0.1:0", "--tls-cert", file}, 2, "not an absolute path"}},
		"audit-log": {{filepath.Join(dir, "none", "audit.log"), nil, 2, "there is no folder " + filepath.Join(dir, "none")},
			{dir, nil, 2, "is a folder: name a file"}, {"x", nil, 2, "not an absolute path"}},
		"advertise":        {{"http://login.example/", nil, 2, "not HOST[:PORT]"}},
		"mirror-advertise": {{"login.example:70000", nil, 2, "not HOST[:PORT]"}},
		"run-as":           {{"no-such-user", nil, 2, "no-such-user"}},
		"pool-address":     {{"0.0.0.0", nil, 2, "IP address"}, {"here", nil, 2, "IP address"}},
		"pilot":            {{"/nowhere/pilot", nil, 2, "there is no pilot binary at /nowhere/pilot"}, {dir, nil, 2, dir}},
		"supply":           {{"mail", nil, 2, "not one of"}},
		"trust-key":        {{"ed25519:xyz", nil, 2, "bytes in base64"}},
		"faults":           {{"none", nil, 2, "is not a fault"}},
		"lease":            {{"10ms", nil, 2, "shorter than 1s"}, {"soon", nil, 2, "a duration such as"}},
		"job-lease":        {{"1s", nil, 2, "shorter than 20s"}},
		"poll":             {{"1ms", nil, 2, "not between"}},
		"keep-history":     {{"1m", nil, 2, "must be 0 or"}},
		"keep-log-mib":     {{"-1", nil, 2, "negative"}, {"many", nil, 2, "not a whole number"}},
		"machine-cpus":     {{"-1", nil, 2, "negative"}, {"1.5", nil, 2, "not a whole number"}},
		"log-level":        {{"loud", nil, 2, "not debug, info, warn or error"}},
		"rate":             {{"-1", nil, 2, "not a number from 0 to"}, {"fast", nil, 2, "not a number"}},
		"visits":           {{"-1", nil, 2, "not a number from 0 to"}},
		"visits-burst":     {{"0", nil, 2, "less than 1"}},
		"least-speed":      {{"0", nil, 2, "less than 1"}},
		"allow-contacts":   {{"host:port", nil, 2, "not a pattern of contacts"}},
		"max-requests":     {{"-1", nil, 2, "negative"}},
		"max-bodies":       {{"-1", nil, 2, "negative"}, {"1", nil, 2, "less than the 64 MiB of one request"}},
		"burst":            {{"0", nil, 2, "less than 1"}},
		"max-body":         {{"-1", nil, 2, "negative"}},
	}
	for _, q := range access.Quotas {
		all["max-"+q.Name] = []bad{{"-1", nil, 2, "negative"}}
	}
	return all
}

// internals are names that an administrator of corrald should never see.
var internals = regexp.MustCompile(`strconv|slog|syscall|goroutine|\*[a-z]+\.|errors\.|\bnet\.|parse error|lookup |0x[0-9a-f]`)

// For each invalid value, --check-config and a start fail with the same sentence, which names the setting, and with the
// same exit code, whether the value is set by a flag or a variable. Neither leaves files behind. This test and the
// others that call execute do not run in parallel: package cli has global flags that every run writes.
func TestCheckConfigAndStartRefuseTheSame(t *testing.T) {
	all := badValues(t)
	known := append(slices.Collect(maps.Keys(settingsOf(xdg.Layout{}))), "faults")
	slices.Sort(known)
	if diff := cmp.Diff(known, slices.Sorted(maps.Keys(all))); diff != "" {
		t.Errorf("settings and those with bad values differ (-settings +bad values):\n%s", diff)
	}
	pilot := filepath.Join(short(t), "pilot")
	if err := os.WriteFile(pilot, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, values := range all {
		for _, b := range values {
			base := short(t)
			args := append(withoutFlags(append(arguments(xdg.Below(base)), "--pilot", pilot), b.with), b.with...)
			try := func(more ...string) (int, string) {
				var stderr bytes.Buffer
				code := execute(context.Background(), append(withoutFlags(args, more), more...), &bytes.Buffer{}, &stderr)
				return code, stderr.String()
			}
			said := map[string]bool{}
			flag := []string{"--" + name, b.value}
			for _, more := range [][]string{append(flag, "--check-config"), flag} {
				code, says := try(more...)
				if code != b.code || !strings.Contains(says, b.says) || !strings.HasPrefix(says, "corrald: ") ||
					strings.Count(says, "\n") != 1 || internals.MatchString(says) {
					t.Errorf("%q: exit code %d, says %q; want %d and one line with %q", more, code, says, b.code, b.says)
				}
				said[says] = true
			}
			if len(said) != 1 {
				t.Errorf("--%s %s: a start and --check-config say %q", name, b.value, slices.Collect(maps.Keys(said)))
			}
			left(t, base)
			if slices.Contains(args, "--"+name) { // a flag takes precedence over a variable
				continue
			}
			t.Run(name, func(t *testing.T) {
				variable := variables(name)[0]
				t.Setenv(variable, b.value)
				if code, says := try("--check-config"); code != b.code || !strings.Contains(says, b.says) ||
					internals.MatchString(says) {
					t.Errorf("%s=%s: exit code %d, says %q; want %d and %q", variable, b.value, code, says, b.code, b.says)
				}
			})
		}
	}
}

// left checks that a directory is empty.
func left(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A variable with a misspelt name is refused, and the error suggests the right name.
func TestMistypedVariable(t *testing.T) {
	for name, want := range map[string]string{
		"CORRALD_RAET":         "corrald: CORRALD_RAET: corrald has no such setting: did you mean CORRALD_RATE?\n",
		"CORRALD_TSL_LISTEN":   "corrald: CORRALD_TSL_LISTEN: corrald has no such setting: did you mean CORRALD_TLS_LISTEN?\n",
		"CORRALD_SOMETHING_OF": "corrald: CORRALD_SOMETHING_OF: corrald has no such setting\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "1")
			for _, more := range [][]string{{"--check-config"}, nil} {
				var stderr bytes.Buffer
				args := append(withoutFlags(arguments(xdg.Below(short(t))), more), more...)
				if code := execute(context.Background(), args, &bytes.Buffer{}, &stderr); code != 2 || stderr.String() != want {
					t.Errorf("exit code %d, says %q; want 2 and %q", code, stderr.String(), want)
				}
			}
		})
	}
}

// While corrald runs, its own sockets, ports and database are not problems: a note says that they were not tested. A
// worker port in use is also only a note, because corrald starts and waits for it.
func TestCheckConfigNotes(t *testing.T) {
	pilot := filepath.Join(short(t), "pilot")
	if err := os.WriteFile(pilot, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	l := xdg.Below(short(t))
	check := func(want string, more ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := append(withoutFlags(append(arguments(l), "--pilot", pilot), more), append(more, "--check-config")...)
		if code := execute(context.Background(), args, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("%q: exit code %d, %s%s; want 0 and %q", more, code, stdout.String(), stderr.String(), want)
		}
	}
	check("worker-listen="+busy.Addr().String(), "--worker-listen", busy.Addr().String())
	check("\nnote: --worker-listen: "+busy.Addr().String()+" is taken", "--worker-listen", busy.Addr().String())
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), l.Database())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check("\nnote: corrald runs already with this state (process ", "--metrics-listen", busy.Addr().String())
}

// A file system is full if it has no free blocks or no free inodes; a file system that counts neither is not full.
func TestRoomIn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fsys unix.Statfs_t
		room bool
	}{
		{"some", unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bavail: 256, Files: 10, Ffree: 1}, true},
		{"less than a MiB", unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bavail: 255, Files: 10, Ffree: 1}, false},
		{"for root alone", unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bfree: 500, Files: 10, Ffree: 1}, false},
		{"no inodes", unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bavail: 999, Files: 10}, false},
		{"neither counted", unix.Statfs_t{Bsize: 4096}, true},
	} {
		if got := roomIn(tt.fsys); got != tt.room {
			t.Errorf("%s: roomIn = %v, want %v", tt.name, got, tt.room)
		}
	}
}
