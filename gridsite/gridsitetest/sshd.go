package gridsitetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An SSHD is a real OpenSSH server on a loopback port, made by scripts/sshd, with the home directory of a user who knows
// it and is known to it. Who logs in to root's has DIR/home as home directory.
type SSHD struct {
	Dir  string // the server's
	Home string // the user's, with .ssh
	Port string

	lines []string
	cmd   *exec.Cmd
}

var sshdScript = sync.OnceValues(func() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("it is not known where this source file is")
	}
	script := filepath.Join(filepath.Dir(file), "..", "..", "scripts", "sshd")
	out, err := exec.Command(script, "--fetch").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --fetch: %w: %s", script, err, out)
	}
	return script, nil
})

// StartSSHD starts a server with further lines of sshd_config, until the test ends.
func StartSSHD(t testing.TB, lines ...string) *SSHD {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	d := &SSHD{Dir: t.TempDir(), Home: t.TempDir(), Port: port, lines: lines}
	if err := os.Mkdir(d.SSH(""), 0o700); err != nil {
		t.Fatal(err)
	}
	d.Authorize(t, d.NewKey(t, ""))
	d.Start(t)
	t.Cleanup(d.Stop)
	d.Write(t, d.SSH("known_hosts"), d.KnownLine(t))
	return d
}

// SSH is the path of a file in the user's .ssh.
func (d *SSHD) SSH(name string) string { return filepath.Join(d.Home, ".ssh", name) }

// Contact is the site's.
func (d *SSHD) Contact() string { return "ssh://127.0.0.1:" + d.Port }

// Write writes a private file.
func (d *SSHD) Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *SSHD) read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// KnownLine is what known_hosts says of the server.
func (d *SSHD) KnownLine(t testing.TB) string {
	t.Helper()
	key := strings.Fields(d.read(t, filepath.Join(d.Dir, "hostkey.pub")))
	return fmt.Sprintf("[127.0.0.1]:%s %s %s\n", d.Port, key[0], key[1])
}

// NewKey makes the user's key anew, and returns its public half.
func (d *SSHD) NewKey(t testing.TB, passphrase string) string {
	t.Helper()
	key := d.SSH("id_ed25519")
	for _, old := range []string{key, key + ".pub"} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	d.keygen(t, "-q", "-t", "ed25519", "-N", passphrase, "-f", key)
	return d.read(t, key+".pub")
}

// Fingerprint is that of the host key.
func (d *SSHD) Fingerprint(t testing.TB) string {
	t.Helper()
	return strings.Fields(d.keygen(t, "-l", "-f", filepath.Join(d.Dir, "hostkey.pub")))[1]
}

func (d *SSHD) keygen(t testing.TB, args ...string) string {
	t.Helper()
	script, err := sshdScript()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := exec.Command(script, "--fetch").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(strings.TrimSpace(string(folder)), "ssh-keygen"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	return string(out)
}

// Authorize lets in who has one of these keys, and nobody else.
func (d *SSHD) Authorize(t testing.TB, public ...string) {
	t.Helper()
	d.Write(t, filepath.Join(d.Dir, "authorized_keys"), strings.Join(public, "\n"))
}

// Start starts the server again, and returns once it listens.
func (d *SSHD) Start(t testing.TB) {
	t.Helper()
	script, err := sshdScript()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(d.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(script, append([]string{d.Dir, d.Port}, d.lines...)...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		conn, err := net.Dial("tcp", "127.0.0.1:"+d.Port)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd does not listen: %v\n%s", err, d.read(t, filepath.Join(d.Dir, "log")))
		}
	}
}

// Logins lists the server's processes that each hold one connection.
func (d *SSHD) Logins() []int {
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

// Stop kills the server and its connections. What runs below them goes on.
func (d *SSHD) Stop() {
	logins := d.Logins()
	_ = d.cmd.Process.Kill()
	for _, pid := range logins {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = d.cmd.Wait()
}
