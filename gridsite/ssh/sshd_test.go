//go:build sites

package ssh_test

import (
	"os"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// An sshd is a real server on a port of its own, with the home directory of a user who is authorized and trusts its
// key.
type sshd struct {
	*gridsitetest.SSHD
	t testing.TB
}

func startSSHD(t testing.TB, lines ...string) *sshd {
	t.Helper()
	return &sshd{gridsitetest.StartSSHD(t, lines...), t}
}

func (d *sshd) write(path, content string) {
	d.t.Helper()
	d.Write(d.t, path, content)
}

// hostKey returns the server's host key.
func (d *sshd) hostKey() xssh.PublicKey {
	d.t.Helper()
	return readPublic(d.t, filepath.Join(d.Dir, "hostkey.pub"))
}

// knows returns a line for known_hosts with the server's address and a key.
func (d *sshd) knows(key xssh.PublicKey) string {
	return knownhosts.Line([]string{d.Address()}, key) + "\n"
}

func readPublic(t testing.TB, file string) xssh.PublicKey {
	t.Helper()
	line, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := xssh.ParseAuthorizedKey(line)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newKey generates a key for the user, which is encrypted if a passphrase is given.
func (d *sshd) newKey(name, passphrase string) xssh.PublicKey {
	d.t.Helper()
	d.NewKeyFile(d.t, name, passphrase)
	return readPublic(d.t, d.SSH(name+".pub"))
}

// encrypt replaces the user's key with an encrypted key that the server accepts.
func (d *sshd) encrypt(passphrase string) {
	d.t.Helper()
	d.Authorize(d.t, d.NewKey(d.t, passphrase))
}

// restart restarts the server with other lines in its configuration.
func (d *sshd) restart(lines ...string) {
	d.t.Helper()
	d.Stop()
	d.Lines = lines
	d.Start(d.t)
}

// open returns a transport with the user's files.
func (d *sshd) open(change ...func(*ssh.Options)) *ssh.Conn {
	d.t.Helper()
	return d.openAt(d.Contact(), change...)
}

func (d *sshd) openAt(contact string, change ...func(*ssh.Options)) *ssh.Conn {
	d.t.Helper()
	options := ssh.Options{Home: d.Home}
	for _, c := range change {
		c(&options)
	}
	conn, err := ssh.New(contact, options)
	if err != nil {
		d.t.Fatal(err)
	}
	conn.SetPatience(2 * time.Minute) // a machine may be busy with other tests
	d.t.Cleanup(func() { conn.Close() })
	return conn
}

func me(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// expectOutput runs a shell script and checks its output.
func expectOutput(t testing.TB, conn gridsite.Conn, script, want string) {
	t.Helper()
	res, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit != 0 || string(res.Stdout) != want {
		t.Errorf("%s: exit %d, stdout %q, stderr %q, want %q", script, res.Exit, res.Stdout, res.Stderr, want)
	}
}
