//go:build sites

package gridsitetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/gridsite/gridsitetest"
)

// Root's home directory remains that of the test even if another program replaces /etc/passwd in the meantime, as
// useradd does. The server uses a copy of /etc in place of the machine's, which is not changed. The sshd of an ordinary
// user mounts no file systems.
func TestHomeOutlivesPasswd(t *testing.T) {
	t.Parallel()
	d := gridsitetest.StartSSHD(t)
	etc := filepath.Join(t.TempDir(), "etc")
	if out, err := exec.Command("cp", "-a", "/etc", etc).CombinedOutput(); err != nil && os.Getuid() == 0 {
		t.Fatalf("copying /etc: %v\n%s", err, out)
	}
	if os.Getuid() == 0 {
		d.Stop()
		d.Under = []string{"unshare", "--mount", "sh", "-euc", `mount --bind "$0" /etc; exec "$@"`, etc}
		d.Start(t)
	}
	before := login(t, d)
	passwd := filepath.Join(etc, "passwd")
	if out, err := exec.Command("cp", "-p", passwd, passwd+"+").CombinedOutput(); err != nil {
		t.Fatalf("copying passwd: %v\n%s", err, out)
	}
	if err := os.Rename(passwd+"+", passwd); err != nil {
		t.Fatal(err)
	}
	after := login(t, d)
	if os.Getuid() == 0 && before != filepath.Join(d.Dir, "home")+" /bin/sh" {
		t.Errorf("home and shell are %s", before)
	}
	if after != before {
		t.Errorf("home and shell are %s after the change of /etc/passwd, were %s", after, before)
	}
}

// login returns the home directory of a new login, and its shell.
func login(t *testing.T, d *gridsitetest.SSHD) string {
	t.Helper()
	ssh := gridsitetest.OpenSSH(t, "ssh", "-F", "none", "-i", d.SSH("id_ed25519"), "-o", "UserKnownHostsFile="+d.SSH("known_hosts"),
		"-o", "BatchMode=yes", "-p", d.Port, "127.0.0.1", `echo "$HOME $SHELL"`)
	out, err := ssh.CombinedOutput()
	if err != nil {
		t.Fatalf("ssh: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}
