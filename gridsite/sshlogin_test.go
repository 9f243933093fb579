package gridsite_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// hostKeyError is the host key error of a login, which sent nothing.
func hostKeyError(t *testing.T, conn *gridsite.SSH, want gridsite.HostKeyProblem) *gridsite.HostKeyError {
	t.Helper()
	err := conn.Connect(t.Context())
	var problem *gridsite.HostKeyError
	if !errors.As(err, &problem) || problem.Problem != want || corral.KindOf(err) != corral.Unavailable {
		t.Fatalf("Connect = %v, want the host key to be %s", err, want)
	}
	return problem
}

func TestSSHHostKeys(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	fingerprint := ssh.FingerprintSHA256(d.hostKey())
	other := d.newKey("other", "")
	known := d.ssh("known_hosts")
	line := d.knownLine()
	otherLine := knownhosts.Line([]string{d.address()}, other)

	d.write(known, "")
	if e := hostKeyError(t, d.open(), gridsite.HostKeyUnknown); e.Fingerprint != fingerprint || !strings.Contains(e.Error(), known) {
		t.Errorf("unknown: %v, want the fingerprint %s and the file", e, fingerprint)
	}
	if err := os.Remove(known); err != nil {
		t.Fatal(err)
	}
	hostKeyError(t, d.open(), gridsite.HostKeyUnknown)

	d.write(known, "# a comment\n"+otherLine+"\n")
	e := hostKeyError(t, d.open(), gridsite.HostKeyChanged)
	for _, want := range []string{fingerprint, known + ":2 " + ssh.FingerprintSHA256(other), "ssh-keygen -R"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("changed: %v, want %q in it", e, want)
		}
	}

	d.write(known, line+"\n@revoked * "+strings.SplitN(line, " ", 2)[1]+"\n")
	hostKeyError(t, d.open(), gridsite.HostKeyRevoked)

	hashed := knownhosts.HashHostname(knownhosts.Normalize(d.address())) + " " + strings.SplitN(line, " ", 2)[1]
	for _, content := range []string{line, hashed, otherLine + "\n" + line} {
		d.write(known, content+"\n")
		if err := d.open().Connect(t.Context()); err != nil {
			t.Errorf("known_hosts %q: %v", content, err)
		}
	}
}

// A host that shows several keys is asked for the one that is known: another one would prove nothing.
func TestSSHHostKeyOfKnownType(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	keygen(t, "-t", "ecdsa", "-N", "", "-f", filepath.Join(d.dir, "second"))
	d.stop()
	d.lines = []string{"HostKey " + filepath.Join(d.dir, "second")}
	d.start()
	if err := d.open().Connect(t.Context()); err != nil {
		t.Error(err)
	}
	d.stop()
	d.lines = nil
	d.start()
	d.write(d.ssh("known_hosts"), knownhosts.Line([]string{d.address()}, readPublic(t, filepath.Join(d.dir, "second.pub")))+"\n")
	hostKeyError(t, d.open(), gridsite.HostKeyChanged)
}

func keygen(t *testing.T, args ...string) {
	t.Helper()
	bin, err := fetchSSHD()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(bin, "ssh-keygen"), append([]string{"-q"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// An authority may vouch for hosts and for users.
func TestSSHCertificates(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	ca := filepath.Join(d.dir, "ca")
	keygen(t, "-t", "ed25519", "-N", "", "-f", ca)
	keygen(t, "-s", ca, "-I", "host", "-h", "-n", "127.0.0.1", filepath.Join(d.dir, "hostkey.pub"))
	keygen(t, "-s", ca, "-I", "user", "-n", me(t), d.public("id_ed25519"))
	d.stop()
	d.write(filepath.Join(d.dir, "authorized_keys"), "")
	d.lines = []string{"HostCertificate " + filepath.Join(d.dir, "hostkey-cert.pub"), "TrustedUserCAKeys " + ca + ".pub"}
	d.start()
	d.write(d.ssh("known_hosts"), "@cert-authority "+knownhosts.Line([]string{d.address()}, readPublic(t, ca+".pub"))+"\n")
	if err := d.open().Connect(t.Context()); err != nil {
		t.Errorf("with KEY-cert.pub: %v", err)
	}
	if err := os.Rename(d.ssh("id_ed25519-cert.pub"), d.ssh("elsewhere.pub")); err != nil {
		t.Fatal(err)
	}
	var login *gridsite.LoginError
	if err := d.open().Connect(t.Context()); !errors.As(err, &login) {
		t.Errorf("without a certificate: %v, want no login", err)
	}
	d.write(d.ssh("config"), "Host 127.0.0.1\n  CertificateFile ~/.ssh/elsewhere.pub\n")
	if err := d.open().Connect(t.Context()); err != nil {
		t.Errorf("with CertificateFile: %v", err)
	}
}

// public writes the public key beside a key of the user's, and returns its path.
func (d *sshd) public(name string) string {
	d.t.Helper()
	content, err := os.ReadFile(d.ssh(name))
	if err != nil {
		d.t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(content)
	if err != nil {
		d.t.Fatal(err)
	}
	d.write(d.ssh(name+".pub"), string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	return d.ssh(name + ".pub")
}

// encrypt replaces the user's key by an encrypted one that the server accepts.
func (d *sshd) encrypt(passphrase string) {
	d.t.Helper()
	key := d.newKey("id_ed25519", passphrase)
	d.write(filepath.Join(d.dir, "authorized_keys"), string(ssh.MarshalAuthorizedKey(key)))
}

// person answers one question after the other, each with one answer, and keeps them.
func person(answers ...string) (gridsite.Asker, *[]gridsite.Question) {
	asked := new([]gridsite.Question)
	return func(_ context.Context, q gridsite.Question) ([]string, error) {
		answer := answers[min(len(*asked), len(answers)-1)]
		*asked = append(*asked, q)
		return []string{answer}, nil
	}, asked
}

func TestSSHPassphrase(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	d.encrypt("secret")
	var login *gridsite.LoginError
	err := d.open().Connect(t.Context())
	if !errors.As(err, &login) || !login.Answerable || !strings.Contains(err.Error(), "nobody is here to give it") {
		t.Errorf("nobody to ask: %v", err)
	}
	answer, asked := person("wrong", "secret")
	conn := d.open()
	err = conn.Login(t.Context(), answer)
	if !errors.As(err, &login) || !strings.Contains(err.Error(), d.ssh("id_ed25519")+": wrong passphrase") {
		t.Errorf("wrong passphrase: %v", err)
	}
	if _, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}}); err == nil || len(*asked) != 1 {
		t.Errorf("Run = %v after %d questions, want it to wait for a person", err, len(*asked))
	}
	if err := conn.Login(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	if q := (*asked)[1]; q.Name != me(t)+"@127.0.0.1" || len(q.Prompts) != 1 || q.Prompts[0].Echo || !strings.Contains(q.Prompts[0].Text, d.ssh("id_ed25519")) {
		t.Errorf("asked %+v, want who wants the passphrase of which key", q)
	}
	for _, pid := range d.logins() { // the login is made anew without a person
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, "a command to run again", func() bool {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err == nil
	})
	if len(*asked) != 2 {
		t.Errorf("asked %d times, want twice", len(*asked))
	}
}

// A passphrase is not asked for while the server would not have the key.
func TestSSHKeyNotAccepted(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	key := d.newKey("id_ed25519", "secret")
	answer, asked := person("secret")
	err := d.open().Login(t.Context(), answer)
	for _, want := range []string{ssh.FingerprintSHA256(key), d.ssh("id_ed25519"), "does not let " + me(t) + " in"} {
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
	bin, err := fetchSSHD()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	agent := exec.Command(filepath.Join(bin, "ssh-agent"), "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	until(t, "ssh-agent to listen", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	add := exec.Command(filepath.Join(bin, "ssh-add"), "-q", d.ssh("id_ed25519"))
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v\n%s", err, out)
	}
	if err := os.Remove(d.ssh("id_ed25519")); err != nil {
		t.Fatal(err)
	}
	withAgent := func(o *gridsite.SSHOptions) { o.AgentSocket = socket }
	if err := d.open(withAgent).Connect(t.Context()); err != nil {
		t.Error(err)
	}
	d.write(d.ssh("config"), "IdentitiesOnly yes\n")
	var login *gridsite.LoginError
	if err := d.open(withAgent).Connect(t.Context()); !errors.As(err, &login) {
		t.Errorf("IdentitiesOnly: %v, want the agent's keys not to be tried", err)
	}
}

func TestSSHProxyJump(t *testing.T) {
	t.Parallel()
	gate, inner := startSSHD(t), startSSHD(t)
	gate.encrypt("gate")
	inner.write(inner.ssh("known_hosts"), inner.knownLine()+"\n"+gate.knownLine()+"\n")
	key, err := os.ReadFile(gate.ssh("id_ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	inner.write(inner.ssh("gate key"), string(key))
	inner.write(inner.ssh("config"), strings.Join([]string{
		"Host gate", "  HostName = 127.0.0.1", "  Port " + gate.port, `  IdentityFile "~/.ssh/gate key"`,
		"Host hpc*", "  HostName 127.0.0.1", "  Port " + inner.port, "  ProxyJump " + me(t) + "@gate",
		"Host *", "  User " + me(t), "",
	}, "\n"))
	answer, _ := person("gate")
	conn := inner.openAt("ssh://hpc1")
	if err := conn.Login(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	expectOutput(t, conn, "echo $SSH_CONNECTION | cut -d' ' -f4", inner.port+"\n")
	if len(gate.logins()) != 1 || len(inner.logins()) != 1 {
		t.Errorf("logins %v and %v, want one at each", gate.logins(), inner.logins())
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "both logins to end", func() bool { return len(gate.logins())+len(inner.logins()) == 0 })
	if _, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}}); corral.KindOf(err) != corral.Unavailable {
		t.Errorf("Run after Close = %v", err)
	}
}

// A command that was cut off is unknown; while the server is away nothing is done; then it goes on.
func TestSSHServerGoesAndComesBack(t *testing.T) {
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
	if _, err := os.ReadFile(fifo); err != nil { // the command runs
		t.Fatal(err)
	}
	d.stop()
	if err := <-cut; corral.KindOf(err) != corral.Unknown || !strings.Contains(err.Error(), "connection was lost") {
		t.Errorf("a command cut off: %v, want its outcome to be unknown", err)
	}
	if err := os.WriteFile(fifo, []byte("\n"), 0); err != nil { // it went on, and is let go
		t.Fatal(err)
	}
	_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
	if corral.KindOf(err) != corral.Unavailable || !strings.Contains(err.Error(), "refused") {
		t.Errorf("while the server is away: %v, want it unavailable", err)
	}
	var paused *gridsite.Paused
	if !errors.As(err, &paused) || !paused.Until.After(time.Now().Add(-time.Second)) {
		t.Errorf("while the server is away: %v, want to be told when it is tried again", err)
	}
	d.start()
	until(t, "a command to run again", func() bool {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err == nil
	})
}

// A server that hangs is taken for lost.
func TestSSHServerHangs(t *testing.T) {
	t.Parallel()
	d := startSSHD(t)
	conn := d.open()
	conn.SetKeepalive(20*time.Millisecond, time.Second)
	works := func() bool {
		_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
		return err == nil
	}
	until(t, "a command to run", works)
	for _, pid := range d.logins() {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	_, err := conn.Run(t.Context(), gridsite.Command{Argv: []string{"true"}})
	if err != nil && corral.KindOf(err) != corral.Unknown {
		t.Errorf("Run = %v, want an unknown outcome or another connection", err)
	}
	until(t, "a command to run again", works)
}
