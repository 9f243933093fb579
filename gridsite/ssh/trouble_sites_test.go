//go:build sites

package ssh_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// Keys in files can be used if an agent does not answer.
func TestSSHSilentAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := listen(t, "unix", filepath.Join(dir, "s"), func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	silent := func(o *ssh.Options) { o.AgentSocket = socket }
	d := startSSHD(t)
	conn := d.open(silent)
	conn.SetAgentPatience(100 * time.Millisecond)
	if err := conn.Connect(t.Context(), false); err != nil {
		t.Error(err)
	}
	d.Authorize(t)
	conn = d.open(silent)
	conn.SetAgentPatience(100 * time.Millisecond)
	if err := conn.Connect(t.Context(), false); err == nil || !strings.Contains(err.Error(), "the ssh agent at "+socket+" does not answer") {
		t.Errorf("Connect = %v, want the agent named", err)
	}
}

// The wait for a login shell that never reaches the command is shorter than the time that a command or stream may take.
func TestSSHBelowABusyShell(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"exec cat >/dev/null": "the login shell did not begin it within 200ms",
		"exec yes":            "bytes of output before the command",
	} {
		conn := startSSHD(t, "ForceCommand "+shell).open()
		if err := conn.Connect(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if shell != "exec yes" {
			conn.SetPatience(200 * time.Millisecond)
		}
		_, err := conn.Stream(t.Context(), gridsite.Command{Argv: []string{"cat"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("below %q: Stream = %v, want %q", shell, err, want)
		}
		if shell == "exec yes" {
			continue
		}
		stdin, end := io.Pipe() // no end of input, so the shell does not end
		defer end.Close()
		if _, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}, Stdin: stdin}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("below %q: Run = %v, want %q", shell, err, want)
		}
	}
}

func TestSSHNoSuchSubsystem(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	_, err := d.open().Subsystem(t.Context(), "sftp")
	if corral.KindOf(err) != corral.Failed || !strings.Contains(err.Error(), d.Contact()) || !strings.Contains(err.Error(), "has no sftp") {
		t.Errorf("Subsystem = %v, want which server has no sftp", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.open().Subsystem(gone, "sftp"); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("Subsystem = %v, want it unavailable", err)
	}
}
