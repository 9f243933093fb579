//go:build sites

package ssh_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/ssh"
)

// hostKeyError returns the host key error of a login that sent nothing.
func hostKeyError(t *testing.T, conn *ssh.Conn, want gridsite.HostKeyProblem) *gridsite.HostKeyError {
	t.Helper()
	err := conn.Connect(t.Context(), false)
	var problem *gridsite.HostKeyError
	if !errors.As(err, &problem) || problem.Problem != want || corral.KindOf(err) != corral.Unavailable {
		t.Fatalf("Connect = %v, want the host key to be %s", err, want)
	}
	return problem
}

func TestSSHHostKeys(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	fingerprint := xssh.FingerprintSHA256(d.hostKey())
	other := d.newKey("other", "")
	known := d.SSH("known_hosts")
	line, otherLine := d.KnownLine(t), d.knows(other)

	d.write(known, "")
	if e := hostKeyError(t, d.open(), gridsite.HostKeyUnknown); e.Fingerprint != fingerprint || !strings.Contains(e.Error(), known) {
		t.Errorf("unknown: %v, want the fingerprint %s and the file", e, fingerprint)
	}
	if err := os.Remove(known); err != nil {
		t.Fatal(err)
	}
	hostKeyError(t, d.open(), gridsite.HostKeyUnknown)

	d.write(known, "# a comment\n"+otherLine)
	e := hostKeyError(t, d.open(), gridsite.HostKeyChanged)
	for _, want := range []string{fingerprint, known + ":2 " + xssh.FingerprintSHA256(other), "ssh-keygen -R '[127.0.0.1]:" + d.Port + "' "} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("changed: %v, want %q in it", e, want)
		}
	}

	_, key, _ := strings.Cut(line, " ")
	d.write(known, line+"@revoked * "+key)
	hostKeyError(t, d.open(), gridsite.HostKeyRevoked)

	hashed := knownhosts.HashHostname(knownhosts.Normalize(d.Address())) + " " + key
	for _, content := range []string{line, hashed, otherLine + line} {
		d.write(known, content)
		if err := d.open().Connect(t.Context(), false); err != nil {
			t.Errorf("known_hosts %q: %v", content, err)
		}
	}
}

// A host with several keys is asked for the known key: another key could not be verified.
func TestSSHHostKeyOfKnownType(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	gridsitetest.Keygen(t, "-t", "ecdsa", "-N", "", "-f", filepath.Join(d.Dir, "second"))
	d.restart("HostKey " + filepath.Join(d.Dir, "second"))
	if err := d.open().Connect(t.Context(), false); err != nil {
		t.Error(err)
	}
	d.restart()
	d.write(d.SSH("known_hosts"), d.knows(readPublic(t, filepath.Join(d.Dir, "second.pub"))))
	hostKeyError(t, d.open(), gridsite.HostKeyChanged)
}

// An authority may certify hosts and users.
func TestSSHCertificates(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	ca := filepath.Join(d.Dir, "ca")
	gridsitetest.Keygen(t, "-t", "ed25519", "-N", "", "-f", ca)
	gridsitetest.Keygen(t, "-s", ca, "-I", "host", "-h", "-n", "127.0.0.1", filepath.Join(d.Dir, "hostkey.pub"))
	gridsitetest.Keygen(t, "-s", ca, "-I", "user", "-n", me(t), d.SSH("id_ed25519.pub"))
	d.Authorize(t)
	d.restart("HostCertificate "+filepath.Join(d.Dir, "hostkey-cert.pub"), "TrustedUserCAKeys "+ca+".pub")
	d.write(d.SSH("known_hosts"), "@cert-authority "+d.knows(readPublic(t, ca+".pub")))
	if err := d.open().Connect(t.Context(), false); err != nil {
		t.Errorf("with KEY-cert.pub: %v", err)
	}
	if err := os.Rename(d.SSH("id_ed25519-cert.pub"), d.SSH("elsewhere.pub")); err != nil {
		t.Fatal(err)
	}
	var login *gridsite.LoginError
	if err := d.open().Connect(t.Context(), false); !errors.As(err, &login) {
		t.Errorf("without a certificate: %v, want no login", err)
	}
	d.write(d.SSH("config"), "Host 127.0.0.1\n  CertificateFile ~/.ssh/elsewhere.pub\n")
	if err := d.open().Connect(t.Context(), false); err != nil {
		t.Errorf("with CertificateFile: %v", err)
	}
}

// A certificate is valid only with its authority, time and key. A host without a valid certificate is unknown, even if
// some authority is known.
func TestSSHHostCertificateDoesNotCount(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	ca, hostKey := filepath.Join(d.Dir, "ca"), filepath.Join(d.Dir, "hostkey.pub")
	gridsitetest.Keygen(t, "-t", "ed25519", "-N", "", "-f", ca)
	authority := "@cert-authority " + d.knows(readPublic(t, ca+".pub"))
	revoked := func(key xssh.PublicKey) string { return "@revoked * " + string(xssh.MarshalAuthorizedKey(key)) }

	d.write(d.SSH("known_hosts"), authority)
	hostKeyError(t, d.open(), gridsite.HostKeyUnknown)

	gridsitetest.Keygen(t, "-s", ca, "-I", "host", "-h", "-n", "127.0.0.1", hostKey)
	d.restart("HostCertificate " + filepath.Join(d.Dir, "hostkey-cert.pub"))
	for what, key := range map[string]xssh.PublicKey{"the authority": readPublic(t, ca+".pub"), "the host's key": d.hostKey()} {
		d.write(d.SSH("known_hosts"), authority+revoked(key))
		if e := hostKeyError(t, d.open(), gridsite.HostKeyRevoked); !strings.Contains(e.Error(), d.SSH("known_hosts")+":2") {
			t.Errorf("%s is revoked: %v, want the line", what, e)
		}
	}

	gridsitetest.Keygen(t, "-s", ca, "-I", "host", "-h", "-n", "127.0.0.1", "-V", "-2d:-1d", hostKey)
	d.restart(d.Lines...)
	d.write(d.SSH("known_hosts"), authority)
	if e := hostKeyError(t, d.open(), gridsite.HostKeyUnknown); !strings.Contains(e.Error(), "expired") {
		t.Errorf("an old certificate: %v, want that it has expired", e)
	}
	if err := d.open().Connect(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := d.open().Connect(t.Context(), false); err != nil {
		t.Errorf("the key was accepted, and its certificate is old: %v", err)
	}
}

func TestSSHPassphrase(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.encrypt("secret")
	var login *gridsite.LoginError
	err := d.open().Connect(t.Context(), false)
	if !errors.As(err, &login) || !login.Answerable || !strings.Contains(err.Error(), "no person can enter one now") {
		t.Errorf("nobody to ask: %v", err)
	}
	answer, asked := person("wrong", "secret")
	conn := d.open()
	err = conn.Login(t.Context(), answer)
	if !errors.As(err, &login) || !strings.Contains(err.Error(), d.SSH("id_ed25519")+": wrong passphrase") {
		t.Errorf("wrong passphrase: %v", err)
	}
	if _, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}}); err == nil || len(*asked) != 1 {
		t.Errorf("Run = %v after %d questions, want it to wait for a person", err, len(*asked))
	}
	if err := conn.Login(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	if q := (*asked)[1]; q.Name != me(t)+"@127.0.0.1" || len(q.Prompts) != 1 || q.Prompts[0].Echo || !strings.Contains(q.Prompts[0].Text, d.SSH("id_ed25519")) {
		t.Errorf("asked %+v, want who wants the passphrase of which key", q)
	}
	for _, pid := range d.Logins() { // the login is repeated without a person
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	gridsitetest.Until(t, "a command to run again", func() bool {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err == nil
	})
	if len(*asked) != 2 {
		t.Errorf("asked %d times, want twice", len(*asked))
	}

	d.encrypt("another") // in the same file
	for _, pid := range d.Logins() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	gridsitetest.Until(t, "the connection to be lost", func() bool { return !conn.Stands() })
	answer, asked = person("another")
	if err := conn.Login(t.Context(), answer); err != nil || len(*asked) != 1 {
		t.Errorf("with a new key: %v after %d questions", err, len(*asked))
	}
}

// A passphrase is not requested if the server would not accept the key.
func TestSSHKeyNotAccepted(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	key := d.newKey("id_ed25519", "secret")
	answer, asked := person("secret")
	err := d.open().Login(t.Context(), answer)
	for _, want := range []string{xssh.FingerprintSHA256(key), d.SSH("id_ed25519"), "does not let " + me(t) + " in"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Connect = %v, want %q", err, want)
		}
	}
	var login *gridsite.LoginError
	if len(*asked) != 0 || !errors.As(err, &login) || login.Answerable {
		t.Errorf("asked %d times, and %+v: no answer would help", len(*asked), login)
	}
}

// An agent signs with keys that are encrypted on disk.
func TestSSHAgent(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	dir, err := os.MkdirTemp("/tmp", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	agent := gridsitetest.OpenSSH(t, "ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	gridsitetest.Until(t, "ssh-agent to listen", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	add := gridsitetest.OpenSSH(t, "ssh-add", "-q", d.SSH("id_ed25519"))
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v\n%s", err, out)
	}
	if err := os.Remove(d.SSH("id_ed25519")); err != nil {
		t.Fatal(err)
	}
	withAgent := func(o *ssh.Options) { o.AgentSocket = socket }
	if err := d.open(withAgent).Connect(t.Context(), false); err != nil {
		t.Error(err)
	}
	if err := os.Rename(d.SSH("id_ed25519.pub"), d.SSH("work.pub")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"none": false, "work": true, "work.pub": true} {
		d.write(d.SSH("config"), "IdentitiesOnly yes\nIdentityFile ~/.ssh/"+file+"\n")
		var login *gridsite.LoginError
		if err := d.open(withAgent).Connect(t.Context(), false); (err == nil) != want || err != nil && !errors.As(err, &login) {
			t.Errorf("with the public key %s alone: %v, want %v: of the agent's keys only those are tried", file, err, want)
		}
	}
}

// A key that only a person can open is tried after the keys for which no person is needed.
func TestSSHLockedKeyIsLast(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	first, second := d.NewKeyFile(t, "id_ed25519", "secret"), d.NewKeyFile(t, "id_rsa", "")
	d.Authorize(t, first, second)
	if err := d.open().Connect(t.Context(), false); err != nil {
		t.Error(err)
	}
}

func TestSSHProxyJump(t *testing.T) {
	t.Parallel()
	gate, inner := startSSHD(t), startSSHD(t)
	gate.encrypt("gate")
	inner.write(inner.SSH("known_hosts"), inner.KnownLine(t)+gate.KnownLine(t))
	key, err := os.ReadFile(gate.SSH("id_ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	inner.write(inner.SSH("gate key"), string(key))
	inner.write(inner.SSH("config"), strings.Join([]string{
		"Host gate", "  HostName = 127.0.0.1", "  Port " + gate.Port, `  IdentityFile "~/.ssh/gate key"`,
		"Host hpc*", "  HostName 127.0.0.1", "  Port " + inner.Port, "  ProxyJump " + me(t) + "@gate,gate",
		"Host away", "  HostName 127.0.0.1", "  Port 1", "  ProxyJump gate",
		"Host *", "  User " + me(t), "",
	}, "\n"))
	answer, _ := person("gate")
	conn := inner.openAt("ssh://hpc1")
	if err := conn.Login(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	expectOutput(t, conn, "echo $SSH_CONNECTION | cut -d' ' -f4", inner.Port+"\n")
	if len(gate.Logins()) != 2 || len(inner.Logins()) != 1 {
		t.Errorf("logins %v and %v, want two and one", gate.Logins(), inner.Logins())
	}
	err = inner.openAt("ssh://away").Login(t.Context(), answer)
	if err == nil || !strings.Contains(err.Error(), gate.Address()+" does not connect us with 127.0.0.1:1") {
		t.Errorf("Login = %v, want which host does not reach which", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	gridsitetest.Until(t, "both logins to end", func() bool { return len(gate.Logins())+len(inner.Logins()) == 0 })
	if _, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}}); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("Run after Close = %v", err)
	}
}

// The outcome of a command that was cut off is unknown. While the server is down nothing is done; afterwards work
// continues.
func TestSSHServerRestarts(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	conn := d.open()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cut := make(chan error)
	go func() {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"sh", "-c", `echo >"$1"; read x <"$1"`, "sh", fifo}})
		cut <- err
	}()
	if _, err := os.ReadFile(fifo); err != nil { // the command is running
		t.Fatal(err)
	}
	d.Stop()
	if err := <-cut; corral.KindOf(err) != corral.Unknown || !strings.Contains(err.Error(), "connection was lost") {
		t.Errorf("a command cut off: %v, want its outcome to be unknown", err)
	}
	if err := os.WriteFile(fifo, []byte("\n"), 0); err != nil { // it continued, and is released
		t.Fatal(err)
	}
	before := time.Now()
	_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
	if corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), "refused") {
		t.Errorf("while the server is away: %v, want it unavailable", err)
	}
	var paused *gridsite.Paused
	if !errors.As(err, &paused) || !paused.Until.After(before) {
		t.Errorf("while the server is away: %v, want to be told when it is tried again", err)
	}
	d.Start(d.t)
	gridsitetest.Until(t, "a command to run again", func() bool {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err == nil
	})
}

// A server that hangs is considered lost.
func TestSSHServerHangs(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	conn := d.open()
	conn.SetKeepalive(20*time.Millisecond, 5*time.Second)
	works := func() bool {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err == nil
	}
	gridsitetest.Until(t, "a command to run", works)
	for _, pid := range d.Logins() {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
	if err != nil && corral.KindOf(err) != corral.Unknown {
		t.Errorf("Run = %v, want an unknown outcome or another connection", err)
	}
	gridsitetest.Until(t, "a command to run again", works)
}
