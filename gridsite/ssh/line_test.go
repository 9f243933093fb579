package ssh_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// A csh other than tcsh rejects words of more than 1024 bytes.
func TestSSHLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`it's a \ long! word`+"\n", 2000) + "."
	line, err := ssh.RemoteLine("mark", []string{"printf", "%s", long})
	if err != nil {
		t.Fatal(err)
	}
	_, words, _ := strings.Cut(line, " sh '")
	for word := range strings.SplitSeq(words, "' '") {
		if len(word) > 1024 {
			t.Fatalf("a word of %d bytes: %.80s", len(word), word)
		}
	}
	out, err := exec.Command("sh", "-c", line).Output()
	if _, said, _ := strings.Cut(string(out), "mark\n"); err != nil || said != long {
		t.Errorf("%d bytes came through, %v; want %d", len(said), err, len(long))
	}
}

// The shell's message about a command that it cannot run names only that command, not the whole line.
func TestRemoteLineOfMissingCommand(t *testing.T) {
	t.Parallel()
	line, err := ssh.RemoteLine("mark", []string{"/no/such/program", "its argument"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 127 || !strings.Contains(said.String(), "not found") || strings.Contains(said.String(), "argument") {
		t.Errorf("%v: it said %q", err, said.String())
	}
}

const printArgs = `printf '%s\000' "$@"`

func expectArgs(t *rapid.T, out []byte, want []string) {
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the command saw (-want +got):\n%s", diff)
	}
}

// The line has the same meaning for every installed login shell.
func TestSSHQuotingForLoginShells(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sh", "dash", "bash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish"} {
		shell, err := exec.LookPath(name)
		if err != nil && name != "sh" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				args := rapid.SliceOfN(gridsitetest.Word, 1, 20).Draw(r, "args")
				line, err := ssh.RemoteLine("mark", append([]string{"sh", "-c", printArgs, "sh"}, args...))
				if err != nil {
					r.Fatal(err)
				}
				out, err := exec.Command(shell, "-c", line).Output()
				if err != nil {
					r.Fatal(err)
				}
				expectArgs(r, []byte(strings.TrimPrefix(string(out), "\nmark\n")), args)
			})
		})
	}
}
