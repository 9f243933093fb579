//go:build sites

package ssh_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// The user's configuration has the same meaning as for ssh: the first value counts, also in an included file and below
// a Match.
func TestSSHConfigOrder(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.write(d.SSH("more"), "Match exec true\n  Port "+d.Port+"\n")
	d.write(d.SSH("config"), strings.Join([]string{
		"# a comment", "", "Host !hpc *.example", "  Port 1",
		"host other hp? !hpx", "\tHOSTNAME 127.0.0.1", "\tUserKnownHostsFile " + d.SSH("none") + " " + d.SSH("known_hosts"),
		"Include " + d.SSH("more"), "Host hpc", "  Port 2", "Match all", "  Port 3", "Host *", "  Port 4", "",
	}, "\n"))
	expectOutput(t, d.openAt("ssh://hpc"), "echo ok", "ok\n")
	expectOutput(t, d.openAt("ssh://"+me(t)+"@hpc"), "id -un", me(t)+"\n")
}

// The user's changes apply from the next login on.
func TestSSHConfigIsReadForEachLogin(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.Authorize(t, d.NewKey(t, ""))
	d.write(d.SSH("config"), "Host hpc\nHostName 127.0.0.1\nPort 1\n")
	conn := d.openAt("ssh://hpc")
	if err := conn.Connect(t.Context(), false); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1: connect: connection refused") {
		t.Fatalf("Connect = %v, want that port 1 refuses", err)
	}
	d.write(d.SSH("config"), "Host hpc\nHostName 127.0.0.1\nPort "+d.Port+"\n")
	if err := conn.Connect(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// The error for a refused user names the settings that Corral did not follow, because they may be the reason.
func TestSSHConfigNotFollowed(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.write(d.SSH("config"), "IdentityAgent /run/agent\n")
	expectOutput(t, d.open(), "echo ok", "ok\n")
	d.newKey("id_ed25519", "")
	err := d.open().Connect(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "Corral does not follow IdentityAgent of 127.0.0.1") {
		t.Errorf("Connect = %v, want what is not followed", err)
	}
}

// A command at the site receives every argument vector unchanged.
func TestSSHQuoting(t *testing.T) {
	t.Parallel()
	conn := startSSHD(t).open()
	rapid.Check(t, func(r *rapid.T) {
		args := rapid.SliceOfN(gridsitetest.Word, 1, 20).Draw(r, "args")
		res, err := conn.Run(t.Context(), gridsite.Command{Argv: append([]string{"sh", "-c", printArgs, "sh"}, args...)})
		if err != nil || res.Exit != 0 {
			r.Fatalf("exit %d, %v: %s", res.Exit, err, res.Stderr)
		}
		expectArgs(r, res.Stdout, args)
	})
}

// The login shell's output before the command is not part of the command's output, and it is an error if the shell does
// not run the command.
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
