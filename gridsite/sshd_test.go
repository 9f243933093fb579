package gridsite_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/corral-pilot/corral/gridsite"
)

// An sshd is a real server on a port of its own, with a user's home directory that knows it and is known to it.
type sshd struct {
	t     testing.TB
	dir   string // the server's
	home  string // the user's
	port  string
	lines []string // of its configuration
	cmd   *exec.Cmd
}

// fetchSSHD has the server's package at hand, and returns the folder of ssh-agent and ssh-keygen.
var fetchSSHD = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("../scripts/sshd", "--fetch")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
})

func startSSHD(t testing.TB, lines ...string) *sshd {
	t.Helper()
	if _, err := fetchSSHD(); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	d := &sshd{t: t, dir: t.TempDir(), home: t.TempDir(), port: port, lines: lines}
	if err := os.Mkdir(filepath.Join(d.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	public := d.newKey("id_ed25519", "")
	d.write(filepath.Join(d.dir, "authorized_keys"), string(ssh.MarshalAuthorizedKey(public)))
	d.start()
	t.Cleanup(d.stop)
	d.write(d.ssh("known_hosts"), d.knownLine()+"\n")
	return d
}

// ssh is the path of a file in the user's .ssh.
func (d *sshd) ssh(name string) string { return filepath.Join(d.home, ".ssh", name) }

func (d *sshd) write(path, content string) {
	d.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *sshd) address() string { return "127.0.0.1:" + d.port }
func (d *sshd) contact() string { return "ssh://" + d.address() }

// hostKey is the key that the server shows.
func (d *sshd) hostKey() ssh.PublicKey {
	d.t.Helper()
	return readPublic(d.t, filepath.Join(d.dir, "hostkey.pub"))
}

func (d *sshd) knownLine() string {
	return knownhosts.Line([]string{d.address()}, d.hostKey())
}

func readPublic(t testing.TB, file string) ssh.PublicKey {
	t.Helper()
	line, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newKey makes a key of the user's, encrypted if there is a passphrase.
func (d *sshd) newKey(name, passphrase string) ssh.PublicKey {
	d.t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.write(d.ssh(name), string(pem.EncodeToMemory(block)))
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		d.t.Fatal(err)
	}
	return public
}

func (d *sshd) start() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command("../scripts/sshd", append([]string{d.dir, d.port}, d.lines...)...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	until(d.t, "sshd to listen", func() bool {
		conn, err := net.Dial("tcp", d.address())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// logins lists the server's processes that each hold one connection.
func (d *sshd) logins() []int {
	pid := d.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var pids []int
	for _, word := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stop kills the server and its connections. What runs below them goes on.
func (d *sshd) stop() {
	logins := d.logins()
	_ = d.cmd.Process.Kill()
	for _, pid := range logins {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = d.cmd.Wait()
	if d.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(d.dir, "log"))
		d.t.Logf("sshd said:\n%s", log)
	}
}

// open makes a transport with the user's files.
func (d *sshd) open(change ...func(*gridsite.SSHOptions)) *gridsite.SSH {
	d.t.Helper()
	return d.openAt(d.contact(), change...)
}

func (d *sshd) openAt(contact string, change ...func(*gridsite.SSHOptions)) *gridsite.SSH {
	d.t.Helper()
	options := gridsite.SSHOptions{Home: d.home}
	for _, c := range change {
		c(&options)
	}
	conn, err := gridsite.NewSSH(contact, options)
	if err != nil {
		d.t.Fatal(err)
	}
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

// until polls until done reports true.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if done() {
			return
		}
		<-tick.C
	}
	t.Fatalf("waited in vain for %s", what)
}

// expectOutput runs a shell script and checks what it prints.
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
