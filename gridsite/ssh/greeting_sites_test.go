//go:build sites

package ssh_test

import (
	"io"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
)

// The output of a profile that sets a terminal's title, or asks without a final newline, is not part of the command's.
func TestSSHGreetingWithoutNewline(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t, `ForceCommand printf 'welcome> '; printf 'beware> ' >&2; eval "$SSH_ORIGINAL_COMMAND"`).open()
	cmd := gridsite.Command{Argv: []string{"sh", "-c", "echo out; echo err >&2"}}
	res, err := conn.Run(t.Context(), cmd)
	if err != nil || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		t.Errorf("Run = %q %q, %v", res.Stdout, res.Stderr, err)
	}
	stream, err := conn.Stream(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if said, err := io.ReadAll(stream); err != nil || string(said) != "out\n" {
		t.Errorf("the stream said %q, %v", said, err)
	}
}

// A profile that discards stderr hides the command's errors from Corral, but the command still runs.
func TestSSHLoginShellWithoutStderr(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t, `ForceCommand exec 2>/dev/null; eval "$SSH_ORIGINAL_COMMAND"`).open()
	res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "echo out; exit 3"}})
	if err != nil || res.Exit != 3 || string(res.Stdout) != "out\n" {
		t.Errorf("Run = %d %q, %v", res.Exit, res.Stdout, err)
	}
}
