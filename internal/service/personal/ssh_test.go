package personal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSSHAgentIsFound(t *testing.T) {
	c := newCorrald(t)
	t.Setenv("SSH_AUTH_SOCK", "")
	if f := sshAgent(t.Context(), c); !f.OK || f.Found != "none" || f.Advice == "" {
		t.Errorf("without an agent: %+v", f)
	}
	dir, err := os.MkdirTemp("/tmp", "a") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	t.Setenv("SSH_AUTH_SOCK", socket)
	if f := sshAgent(t.Context(), c); !strings.HasPrefix(f.Found, "does not answer: ") || f.Advice == "" {
		t.Errorf("with an agent that is gone: %+v", f)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if f := sshAgent(t.Context(), c); !f.OK || f.Found != "answers on "+socket {
		t.Errorf("with an agent: %+v", f)
	}
}

// The agent that corrald was started with counts until it is restarted.
func TestAgentOfCorraldIsAnother(t *testing.T) {
	c := newCorrald(t)
	t.Setenv("SSH_AUTH_SOCK", "")
	start(t, c)
	if f := sshAgent(t.Context(), c); !f.OK || f.Found != "none" {
		t.Errorf("neither has one: %+v", f)
	}
	t.Setenv("SSH_AUTH_SOCK", "/run/new")
	again := fmt.Sprintf("kill %d", c.PID())
	if f := sshAgent(t.Context(), c); !f.OK || f.Found != "corrald was started without one, the present one is /run/new" || !strings.Contains(f.Advice, again) {
		t.Errorf("a new one: %+v, want %s", f, again)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", "/run/old")
	start(t, c)
	t.Setenv("SSH_AUTH_SOCK", "/run/new")
	if f := sshAgent(t.Context(), c); !f.OK || f.Found != "corrald was started with /run/old, the present one is /run/new" || f.Advice == "" {
		t.Errorf("another one: %+v", f)
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	if f := sshAgent(t.Context(), c); !strings.HasPrefix(f.Found, "does not answer: ") || f.Advice == "" {
		t.Errorf("its own, which is gone: %+v", f)
	}
}

func TestKnownHostsAreLookedFor(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if f := knownHosts(home); !f.OK || f.Found != "no "+home+"/.ssh/known_hosts" || f.Advice == "" {
		t.Errorf("without a file: %+v", f)
	}
	if err := os.MkdirAll(home+"/.ssh/known_hosts", 0o700); err != nil {
		t.Fatal(err)
	}
	if f := knownHosts(home); f.OK || f.Advice == "" {
		t.Errorf("a file that cannot be read: %+v", f)
	}
	if err := errors.Join(os.Remove(home+"/.ssh/known_hosts"), syscall.Mkfifo(home+"/.ssh/known_hosts", 0o600)); err != nil {
		t.Fatal(err)
	}
	if f := knownHosts(home); f.OK || !strings.Contains(f.Found, "it is a named pipe, not a regular file") {
		t.Errorf("a named pipe: %+v", f)
	}
}
