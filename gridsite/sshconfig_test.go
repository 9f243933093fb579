package gridsite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

func TestSSHBadContacts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, contact := range []string{
		"", "host", "ssh://", "ssh://host:0", "ssh://host:99999", "ssh://host/path", "ssh://host?x", "local:", "ssh://a b", "ssh://a%C2%85b@host",
		"ssh://u:secret@host", "ssh://u:secret@host/path", "ssh://u:secret@a b", "ssh://u:%secret@host", "u:secret@host", "ssh://u:s@secret@host",
	} {
		_, err := gridsite.NewSSH(contact, gridsite.SSHOptions{Home: home})
		if corral.KindOf(err) != corral.Invalid || !strings.HasPrefix(err.Error(), "contact: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("NewSSH(%q) = %v, want it invalid, without a password", contact, err)
		}
	}
}

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
		_, err := gridsite.NewSSH("ssh://host", gridsite.SSHOptions{Home: home})
		if corral.KindOf(err) != corral.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", config, err, want)
		}
	}
}

// What the user's configuration says for the first host that matches counts, as for ssh.
func TestSSHConfigOrder(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.write(d.SSH("config"), strings.Join([]string{
		"# a comment", "", "Host !hpc *.example", "  Port 1",
		"host other hp? !hpx", "\tHOSTNAME 127.0.0.1", "\tport=" + d.Port, "\tUserKnownHostsFile " + d.SSH("none") + " %d/.ssh/known_hosts",
		"Host hpc", "  Port 2", "Match all", "  Port 3", "Host *", "  Port 4", "",
	}, "\n"))
	expectOutput(t, d.openAt("ssh://hpc"), "echo ok", "ok\n")
	expectOutput(t, d.openAt("ssh://"+me(t)+"@hpc"), "id -un", me(t)+"\n")
}

// Who is not let in learns what Corral did not follow: the reason may be there.
// What the user changes counts from the next login on.
func TestSSHConfigIsReadForEachLogin(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.Authorize(t, d.NewKey(t, ""))
	d.write(d.SSH("config"), "Host hpc\nHostName 127.0.0.1\nPort 1\n")
	conn := d.openAt("ssh://hpc")
	if err := conn.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1: connect: connection refused") {
		t.Fatalf("Connect = %v, want that port 1 refuses", err)
	}
	d.write(d.SSH("config"), "Host hpc\nHostName 127.0.0.1\nPort "+d.Port+"\n")
	if err := conn.Connect(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSSHConfigNotFollowed(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.write(d.SSH("config"), "Include more\nMatch exec true\n  User somebody\n")
	expectOutput(t, d.open(), "echo ok", "ok\n")
	d.newKey("id_ed25519", "")
	err := d.open().Connect(t.Context())
	for _, want := range []string{"Include in " + d.SSH("config") + ":1", "Match in " + d.SSH("config") + ":2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Connect = %v, want %q", err, want)
		}
	}
}

// word is any argument, and those that shells make something of.
var word = rapid.OneOf(
	rapid.SampledFrom([]string{"", "-", "--", "-n", "'", "''", `\`, `\0101`, "%s", "\n", "\n\n", " ", "$HOME", "`id`", "$(id)", "*", "~", "é", "!", "!!", `"`, "a'b"}),
	rapid.Map(rapid.SliceOf(rapid.ByteRange(1, 255)), func(b []byte) string { return string(b) }),
	rapid.StringMatching(`['"\\$\x60 \n;&|*?~#!%-]{0,12}`),
)

const printArgs = `printf '%s\000' "$@"`

func expectArgs(t *rapid.T, out []byte, want []string) {
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the command saw (-want +got):\n%s", diff)
	}
}

// A command at the site gets every argument vector exactly.
func TestSSHQuoting(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	rapid.Check(t, func(r *rapid.T) {
		args := rapid.SliceOfN(word, 1, 20).Draw(r, "args")
		res, err := conn.Run(t.Context(), gridsite.Command{Argv: append([]string{"sh", "-c", printArgs, "sh"}, args...)})
		if err != nil || res.Exit != 0 {
			r.Fatalf("exit %d, %v: %s", res.Exit, err, res.Stderr)
		}
		expectArgs(r, res.Stdout, args)
	})
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
				args := rapid.SliceOfN(word, 1, 20).Draw(r, "args")
				line, err := gridsite.RemoteLine("mark", append([]string{"sh", "-c", printArgs, "sh"}, args...))
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

// What a login shell says before the command is not the command's; one that does not run it is no answer.
func TestSSHLoginShellTalks(t *testing.T) {
	t.Parallel()
	talks := startSSHD(t, `ForceCommand echo welcome; echo "$SSH_ORIGINAL_COMMAND"; echo beware >&2; eval "$SSH_ORIGINAL_COMMAND"`)
	res, err := talks.open().Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}})
	if err != nil || res.Exit != 3 || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" {
		t.Errorf("Run = %d %q %q, %v", res.Exit, res.Stdout, res.Stderr, err)
	}
	refuses := startSSHD(t, "ForceCommand echo This account is not available; exit 1")
	_, err = refuses.open().Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
	if corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), "This account is not available") {
		t.Errorf("Run = %v, want the login shell's own words", err)
	}
}
