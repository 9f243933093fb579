package personal

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSSHAgentIsFound(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	if f := sshAgent(t.Context()); !f.OK || f.Found != "none" || f.Advice == "" {
		t.Errorf("without an agent: %+v", f)
	}
	dir, err := os.MkdirTemp("/tmp", "a") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	t.Setenv("SSH_AUTH_SOCK", socket)
	if f := sshAgent(t.Context()); !strings.HasPrefix(f.Found, "does not answer: ") || f.Advice == "" {
		t.Errorf("with an agent that is gone: %+v", f)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if f := sshAgent(t.Context()); !f.OK || !strings.HasPrefix(f.Found, "answers on "+socket) {
		t.Errorf("with an agent: %+v", f)
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
}
