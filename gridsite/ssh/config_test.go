package ssh_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

func TestSSHBadConfig(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"Host *\n  ProxyCommand nc %h %p\n":  "config:2: ProxyCommand is not supported: use ProxyJump",
		"Host *\n  IdentityFile ~/.ssh/%z\n": "config:2: ",
		"User \"me\n":                        "config:1: a quote is not closed",
		"Port\n":                             "config:1: Port has no value",
		"Port x\n":                           `"x" is no port`,
		"ProxyJump :22\n":                    "want [user@]host[:port]",
	} {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ssh.New("ssh://host", ssh.Options{Home: home})
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", config, err, want)
		}
	}
}

const printArgs = `printf '%s\000' "$@"`

func expectArgs(t *rapid.T, out []byte, want []string) {
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the command saw (-want +got):\n%s", diff)
	}
}

// The line means the same to any login shell that is installed.
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
